import type { HostRow } from './layout.ts'

/** `3.5 GiB, 2 CPU free`: what of a live host is left; of the others nothing is. */
export function tellFree({ state }: HostRow, { freeRamMib, freeCpuMc }: HostRow['now']): string {
  if (state !== 'live') return ''
  const isFree = freeRamMib >= 0 && freeCpuMc >= 0
  return isFree
    ? `${tenth(freeRamMib / 1_024)} GiB, ${tenth(freeCpuMc / 1_000)} CPU free`
    : `over by ${tenth(Math.max(0, -freeRamMib) / 1_024)} GiB, ${tenth(Math.max(0, -freeCpuMc) / 1_000)} CPU`
}

/** With one digit where it is needed, rounded down: what is shown as free is free. */
function tenth(value: number): string {
  return String(Math.floor(value * 10) / 10)
}
