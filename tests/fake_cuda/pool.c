/* Objects with recycled addresses: what a handle of a dead object points to is the next object of that size.
 */
#include <stdlib.h>
#include <string.h>

#include "fake.h"

enum { OBJECT_BYTES = 2048, MAX_OBJECTS = 16384 };

static struct fake_object* objects[MAX_OBJECTS]; /* every object ever made, for fake_is */
static unsigned object_count;
static struct fake_object* free_objects[FAKE_FUNCTION + 1];

void* fake_new(enum fake_kind kind, size_t bytes) {
  struct fake_object* object = free_objects[kind];
  if (bytes > OBJECT_BYTES || object_count == MAX_OBJECTS) abort();
  if (object) {
    free_objects[kind] = object->next_free;
  } else {
    object = malloc(OBJECT_BYTES);
    objects[object_count++] = object;
  }
  memset(object, 0, OBJECT_BYTES);
  object->kind = kind;
  return object;
}

void fake_delete(void* handle) {
  struct fake_object* object = handle;
  enum fake_kind kind = object->kind;
  memset(object, 0, OBJECT_BYTES);
  object->next_free = free_objects[kind];
  free_objects[kind] = object;
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
