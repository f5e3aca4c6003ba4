import type { Surroundings } from '../surroundings.ts'
import { administrators } from './administrators.ts'
import { clients } from './clients.ts'
import { clouds, clusters } from './clusters.ts'
import { git } from './git.ts'
import { plain } from './plain.ts'
import { tools } from './tools.ts'

/** By the program's base name; by two words where a sub-command obeys something else. */
export const byProgram: ReadonlyMap<string, Surroundings> = new Map([
  ...plain,
  ...administrators,
  ...clients,
  ...clouds,
  ...clusters,
  ...git,
  ...tools,
])
