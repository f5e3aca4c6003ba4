import type { Effect } from '../db/effects.ts'
import { Problem } from './http/problem.ts'

/** What the caller of a write is told: done, or why not, or by which key to ask. */
export function answerEffect(effect: Effect): { detail: string; key: string } & Record<string, unknown> {
  const { key, status, detail, result } = effect
  if (status === 'done') return { detail, ...result, key }
  const fields = { key, result }
  if (status === 'failed') throw new Problem(502, 'EFFECT_FAILED', detail, { fields })
  const text = 'What became of it is not known yet: ask for its key.'
  throw new Problem(504, status === 'running' ? 'EFFECT_RUNNING' : 'EFFECT_INDETERMINATE', text, { fields })
}
