// Totals of a child's parts (src/analysis/ranges/range_split.h): what the parts of one child have summed up
// so far, in its record.
//
// Constants: KLAP_TOTALS, for each sum of the child KLAP_TOTAL(number, type, operation, nothing), where
// `nothing` are the bits of a value that adds nothing; KLAP_TOTALS_AT, the place of the totals in a record.
// Each has 8 bytes, and the number of the parts that are done stands behind them.
#ifndef KLAP_PART_TOTALS_H
#define KLAP_PART_TOTALS_H

#define KLAP_TOTAL(number, type, operation, nothing) +1
static constexpr int kTotals = 0 KLAP_TOTALS;
#undef KLAP_TOTAL

// Makes the record of a child ready that runs as several parts.
static __device__ __forceinline__ void begin_totals(unsigned char* record) {
  unsigned long long* const totals = reinterpret_cast<unsigned long long*>(record + KLAP_TOTALS_AT);
#define KLAP_TOTAL(number, type, operation, nothing) totals[number] = nothing;
  KLAP_TOTALS
#undef KLAP_TOTAL
  totals[kTotals] = 0;
}

#endif
