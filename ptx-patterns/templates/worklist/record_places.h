// Where the record of a number begins: in the front of a queue's records or in the rest (KlapRecordPlaces).
//
// Only a thread that takes a record for the first time asks this. All others have its link, which tells
// without another question where it is.
#ifndef KLAP_RECORD_PLACES_H
#define KLAP_RECORD_PLACES_H

#include "worklist/work_queue.h"

// The distance of the record's part from the first record, in units.
static __device__ __forceinline__ unsigned int place_of_part(KlapRecordPlaces places, unsigned int number) {
  return number < places.front_records ? places.front : places.rest;
}

// The distance in units between the begin of its part and a place that has such a distance from the first
// record. What is in neither part has a distance that is larger than any part (KLAP_WORK_NAMED_BYTES).
static __device__ __forceinline__ unsigned int unit_in_part(KlapRecordPlaces places, unsigned int unit,
                                                            unsigned int units_of_record) {
  const unsigned int in_front = unit - places.front;
  return in_front < places.front_records * units_of_record ? in_front : unit - places.rest;
}

#endif
