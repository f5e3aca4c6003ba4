import { clusterEndings } from './cluster.ts'
import { databaseEndings } from './databases.ts'
import { deviceEndings } from './device.ts'
import { hostEndings } from './hosts.ts'
import { metricEndings } from './metrics.ts'
import { platformEndings } from './platform.ts'
import type { LabEnding } from './play.ts'

/** An honest ending for each scenario of the lab. */
export const labEndings: LabEnding[] = [
  ...platformEndings,
  ...deviceEndings,
  ...hostEndings,
  ...metricEndings,
  ...databaseEndings,
  ...clusterEndings,
]
