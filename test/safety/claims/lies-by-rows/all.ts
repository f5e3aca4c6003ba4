import { actions, orders } from './actions.ts'
import { causes } from './causes.ts'
import { events } from './events.ts'
import { figures } from './figures.ts'
import type { Lie } from './lie.ts'
import { mixedParts } from './mixed-parts.ts'
import { names } from './names.ts'
import { night } from './night.ts'
import { polarity } from './polarity.ts'
import { retoldLines } from './retold-lines.ts'
import { scripts } from './scripts.ts'
import { speech } from './speech.ts'
import { states } from './states.ts'

/**
 * Lies written from rows alone, by people who had not read what judges them: a judge that knows its
 * own words finds only these.
 */
export const liesByRows: Lie[] = [
  ...states,
  ...figures,
  ...names,
  ...polarity,
  ...causes,
  ...events,
  ...actions,
  ...orders,
  ...scripts,
  ...speech,
  ...night,
  ...mixedParts,
  ...retoldLines,
]
