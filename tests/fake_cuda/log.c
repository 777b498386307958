/* The call log, and failures on request. */
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "fake.h"

void fake_log(const char* format, ...) {
  const char* file = getenv("FAKE_CUDA_LOG");
  char line[4096];
  va_list arguments;
  if (!file) return;
  va_start(arguments, format);
  int length = vsnprintf(line, sizeof line - 1, format, arguments);
  va_end(arguments);
  if (length < 0) return;
  if (length > (int)sizeof line - 2) length = (int)sizeof line - 2;
  line[length++] = '\n';
  /* One write in append mode, so that lines of threads and of forked children do not mix. */
  int fd = open(file, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0644);
  if (fd < 0 || write(fd, line, (size_t)length) != length) abort();
  close(fd);
}

/* The text behind "NAME=" in a comma-separated list, NULL if there is none. */
static const char* value_of(const char* list, const char* name) {
  size_t length = strlen(name);
  while (list && *list) {
    if (strncmp(list, name, length) == 0 && list[length] == '=') return list + length + 1;
    list = strchr(list, ',');
    if (list) ++list;
  }
  return NULL;
}

int fake_setting(const char* list, const char* name, int otherwise) {
  const char* value = value_of(list, name);
  return value ? atoi(value) : otherwise;
}

/* How often the scripted call at this place of the list has happened. A changed list starts from nought. */
static int times_called(const char* list, size_t place) {
  static char seen[1024];
  static int calls[sizeof seen];
  static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
  if (strlen(list) >= sizeof seen) abort();
  pthread_mutex_lock(&lock);
  if (strcmp(seen, list) != 0) {
    memset(calls, 0, sizeof calls);
    strcpy(seen, list);
  }
  int count = ++calls[place];
  pthread_mutex_unlock(&lock);
  return count;
}

static CUresult scripted(const char* name) {
  const char* list = getenv("FAKE_CUDA_FAIL");
  const char* value = value_of(list, name);
  if (!value) return CUDA_SUCCESS;
  const char* at = value + strspn(value, "0123456789");
  if (*at != '@') return (CUresult)atoi(value);
  char* end;
  long first = strtol(at + 1, &end, 10);
  int count = times_called(list, (size_t)(value - list));
  int happens = *end == '+' ? count >= first : count == first;
  return happens ? (CUresult)atoi(value) : CUDA_SUCCESS;
}

CUresult fake_failure(const char* function, const char* detail) {
  CUresult result = scripted(function);
  if (result == CUDA_SUCCESS && detail) {
    char name[512];
    snprintf(name, sizeof name, "%s:%s", function, detail);
    result = scripted(name);
  }
  return result;
}
