/* Objects with recycled addresses: what a handle of a dead object points to is the next object of that size.
 */
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "fake.h"

enum { OBJECT_BYTES = 2048, MAX_OBJECTS = 16384 };

static struct fake_object* objects[MAX_OBJECTS]; /* every object ever made, for fake_is */
/* Threads that ask about their own objects hold no lock, while another one makes one. */
static atomic_uint object_count;

void* fake_new(enum fake_kind kind, size_t bytes) {
  struct fake_object* object = NULL;
  if (bytes > OBJECT_BYTES || object_count == MAX_OBJECTS) abort();
  for (unsigned i = 0; !object && i < object_count; ++i) {
    if (!objects[i]->kind && objects[i]->previous_kind == kind) object = objects[i];
  }
  const int is_new = !object;
  if (is_new) object = malloc(OBJECT_BYTES);
  memset(object, 0, OBJECT_BYTES);
  object->kind = kind;
  if (is_new) {
    objects[object_count] = object;
    ++object_count;
  }
  return object;
}

void fake_delete(void* handle) {
  struct fake_object* object = handle;
  enum fake_kind kind = object->kind;
  memset(object, 0, OBJECT_BYTES);
  object->previous_kind = kind;
}

int fake_is(const void* handle, enum fake_kind kind) {
  for (unsigned i = 0; i < object_count; ++i) {
    if (objects[i] == handle) return objects[i]->kind == kind;
  }
  return 0;
}

void* fake_at(unsigned index, enum fake_kind kind) {
  return index < object_count && objects[index]->kind == kind ? objects[index] : NULL;
}

unsigned fake_count(void) { return object_count; }
