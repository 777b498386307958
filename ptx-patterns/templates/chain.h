// Records of launches that stand in a loop: each knows the launch that the same thread made before it.
//
// CUDA runs one thread's launches into one stream one after another. How many there will be is not known, so
// such launches are recorded in a queue of fixed size (feed.h), and a record that must wait for another one
// says for which. Nothing waits but for the thread's own order: a launch into the stream without any order
// has no use for any of this, and its records are those of feed.h.
//
// A kernel may launch at several places, all of which record in one queue: a thread's last record is known to
// all of them. They may launch several kernels, or one with different blocks; such a record says what it
// launches (KLAP_SEVERAL_KERNELS), for its thread, while the consumer sees that from the item.
//
// A thread whose next launch finds no room must not launch it before what it has recorded. It takes those
// records back and makes the launches itself, in order, before the new one. While it runs the consumer does
// not, so nobody looks on. What has no order waits for nothing and is not taken back.
#ifndef KLAP_CHAIN_H
#define KLAP_CHAIN_H

#include "feed.h"

// In front of the arguments. The first four words are those of feed.h; no blocks: the record was taken back.
struct KlapChained {
  unsigned int grid_x, grid_y, grid_z, item;
  unsigned int before;      // the record to wait for, as a link
  unsigned int unfinished;  // its items that are not done, where another record waits for it; else 0
  unsigned long long stream;
#ifdef KLAP_SEVERAL_KERNELS
  unsigned long long child;
  unsigned int kernel;  // its number in the consumer
  unsigned int unused;
#endif
};

// A link is how an item names its record (KLAP_FEED_ITEM): where it begins, counted in 16 bytes from the
// first one, plus one.
#define KLAP_CHAIN_NONE 0u
// In place of a thread's last record: its launches are the program's own from here on.
#define KLAP_CHAIN_NATIVE 0xffffffffu

#endif
