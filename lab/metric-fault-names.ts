/** Faults that only metrics tell, or logs: see `metric-faults.ts`. */
export const metricFaults = [
  'slow_leak',
  'error_rate',
  'noisy_neighbour',
  'connection_pool',
  'clock_skew',
  'certificate_ending',
  'red_herring',
  'missing_data',
  'stale_lock',
] as const
export type MetricFault = (typeof metricFaults)[number]

export const isMetricFault = (name: string): name is MetricFault => metricFaults.some((each) => each === name)
