import type { PlacementHost, PlacementLimits } from './placement.ts'

/** Returns the capacity of a host for VMs, in whole MiB and thousandths of a CPU. */
export function usableCapacity(
  { limits }: { limits: PlacementLimits },
  { ramMib, cpuMc, ramReserveMib, cpuReserveMc = 0 }: PlacementHost,
): { ramMib: number; cpuMc: number } {
  const ram = ramReserveMib === undefined ? (ramMib * (100 - limits.ramReservePercent)) / 100 : ramMib - ramReserveMib
  return {
    ramMib: Math.max(0, Math.floor(ram)),
    cpuMc: Math.max(0, Math.floor(((cpuMc - cpuReserveMc) * limits.cpuOvercommitPercent) / 100)),
  }
}
