// The context of a promoted chain: the layout that device templates and the host runtime share.
//
// A kernel of one block that launches one block of itself is a chain of links. Promoted, it runs in blocks
// that stay. Each takes the number of the next link, waits until the link before has done what it needs, and
// runs it (promote.cu). A context serves one kernel in one stream.
//
// One link tells the next everything through the next one's slot. Every word of a slot carries 4 bytes of an
// argument and the mark of a link, in one access. So a thread that sees the mark has the bytes. Numbers count
// on from launch to launch, so that old words need not be cleared. Marks are 32 bits of a number, and some
// numbers belong to no link. So each time that numbers have grown by 2^30, the ring is cleared between two
// launches.
//
// If values only pass from link to link, one slot is enough, the ring's first. Each link exchanges its words
// for the next one's, once it has found its own there. A launch begins with its first link's mark there; that
// link needs no words.
//
// The ring. A slot is written for link n + slots only when no block will read it as link n's any more. In a
// chain that passes from link to link this follows: the writer has heard, link by link, from all links
// before. If links look back (promote_link.cu), finished links are counted by quarters of the ring, and a
// launch begins at a whole number of rings. Link n writes its slot when all links up to three quarters before
// its own are done. So the slots from the beginning of the quarter before an unfinished link's stay. A link
// may be held up so long that it finds a slot further back written again. Then it begins to look anew, from
// its own slot. The first unfinished link is never held up so: the one before it has all that it needs, in a
// slot that stays.
//
// The context is made ready for the next launch in one of two ways. The last block of a launch may do so, for
// which all must be counted out. Or the context is double-buffered (KLAP_DOUBLE_BUFFERED): it has two heads
// with a ring each, used by alternate launches. A block of a launch makes the other ones ready as soon as it
// begins. The launch that used them is complete, so no block waits for another.
//
// A quarter's counter also serves the fourth quarter behind it. It is right about the earlier one as long as
// no link of the later one has been counted; and these wait for the earlier one's links, too.
//
// This file is compiled by NVRTC into the templates and by the host compiler into the runtime.
#ifndef KLAP_PROMOTE_H
#define KLAP_PROMOTE_H

#include "common/report.h"

#define KLAP_CHAIN_SLOTS 8192u  // a power of two, and far more than blocks that a device can hold
#define KLAP_CHAIN_QUARTER (KLAP_CHAIN_SLOTS / 4)

struct KlapChain {
  unsigned long long* ring;  // [KLAP_CHAIN_SLOTS * words of a slot], zero at first
  KlapReport* report;        // of the chain's stream, null if not asked for
  unsigned long long first;  // number of the first link of this launch, set before it begins
  // Blocks that have left, the last of which makes ready for the next launch, and, from bit 32 on, links that
  // they ran.
  unsigned long long left;
  long long other;                        // how far away the other head is, in bytes
  unsigned int ahead;                     // links known to exist and not done, beside one (promote_launch.cu)
  alignas(128) unsigned long long taken;  // numbers given out
  // Links that are done, by quarters of the ring, counted as if all numbers before this launch had been
  // links.
  alignas(128) unsigned long long done[4];
  // The number of the first link that does not exist, 0 while that is not known. It is only for chains whose
  // arguments do not tell it.
  alignas(128) unsigned long long end;
};

// The words of a slot: those of the arguments that are passed on, at least one. Behind them are the words of
// the fast chain, if there is one (promote.cu): one more than it has arguments' words.
#define KLAP_CHAIN_SLOT_BYTES(words, fast_words) (8u * ((words) + (fast_words)))

// The state that a block keeps in shared memory about its link. Behind it are three areas laid out as the
// parameter block, of KLAP_AREA_BYTES each. These are for the link's arguments, the values that it combines
// with those it carries, and the arguments of the next link. The results of its warps' look-back follow.
struct KlapLink {
  unsigned long long number;
  unsigned long long first;    // number of the launch's first link
  unsigned long long* ring;    // the context's; every thread would read it from there again and again
  unsigned long long quarter;  // of the ring, up to which this block has seen links done
  unsigned int exists;
  unsigned int launched;  // the next one, by this
  unsigned int goes_on;   // the block may find another link behind this one
  // Where blocks launch each other (promote_launch.cu).
  unsigned int kept;      // links that this block runs itself, behind its own
  unsigned int launches;  // the last link found a place
  unsigned int refused;   // as many links as were skipped after the last refusal, 0 after a launch
  unsigned int skips;     // links to come that no launch is tried for
  // The counts of a block that stays are kept here. Otherwise all threads would keep registers for them.
  unsigned int links;  // that it has run
  KlapReport* report;  // the context's
  // Where a block takes several links at a time: the first of them, counted from the launch's first.
  unsigned long long index;
};
#define KLAP_LINK_AREA 80

// A block that takes several links at a time has as many more of these behind its own. Each is a part with
// the first two areas. Its own then serves all of them.
#define KLAP_PARTS_AT(area_bytes, words) \
  ((KLAP_LINK_AREA + 3 * (area_bytes) + 8 * (1 + (words)) + 15) / 16 * 16)
#define KLAP_PART_BYTES(area_bytes) (KLAP_LINK_AREA + 2 * (area_bytes))

#endif
