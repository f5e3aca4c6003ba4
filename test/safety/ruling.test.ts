import { describe, expect, test } from '@jest/globals'
import type { ResourceRef } from '../../domain/registry.ts'
import { fold, type SafetyState } from '../../safety/fold.ts'
import { byteBudget, nearBudget, spentBudget } from '../../safety/ruling.ts'
import { logOf, looked, wrote } from '../support/events.ts'

const shard: ResourceRef = { kind: 'shard', id: 'db-osl-1' }
const budgets = { turns: 20, tokens: 1000, seconds: 600 }
const state = (more: Partial<SafetyState> = {}): SafetyState => ({ ...fold([], 1), ...more })
const said = (given: SafetyState, turn = 1, of = budgets) => nearBudget(given, turn, of)?.code ?? null

describe('a limit is used up', () => {
  test.each<[string, Partial<SafetyState>, string | null]>([
    ['not by the token before the last', { tokens: 999 }, null],
    ['by the last token', { tokens: 1000 }, 'tokens'],
    ['not by the byte before the last', { bytes: byteBudget - 1 }, null],
    ['by the last byte', { bytes: byteBudget }, 'bytes'],
  ])('%s', (_title, more, expected) => {
    expect(spentBudget(state(more), budgets)).toBe(expected)
  })
})

describe('a notice before the end', () => {
  test.each<[string, Partial<SafetyState>, number, string | null]>([
    ['is not said while there is room', {}, 1, null],
    ['is not said while two turns are left', {}, 18, null],
    ['is said on the turn before the last, on which an ending can still be put right', {}, 19, 'budget_turns_soon'],
    ['is said on the last turn', {}, 20, 'budget_turns'],
    ['is not said below 85 % of the tokens', { tokens: 849 }, 1, null],
    ['is said at 85 % of the tokens', { tokens: 850 }, 1, 'budget_tokens'],
    ['is not said below 85 % of the time', { workedMs: 509_999 }, 1, null],
    ['is said at 85 % of the time', { workedMs: 510_000 }, 1, 'budget_time'],
    ['is not said below 85 % of the bytes', { bytes: Math.floor(0.85 * byteBudget) }, 1, null],
    ['is said at 85 % of the bytes', { bytes: Math.ceil(0.85 * byteBudget) }, 1, 'budget_bytes'],
    ['is said once', { tokens: 900, corrected: new Set(['budget_tokens']) }, 1, null],
    ['is said for the next limit after it', { tokens: 900, corrected: new Set(['budget_turns']) }, 20, 'budget_tokens'],
  ])('%s', (_title, more, turn, expected) => {
    expect(said(state(more), turn)).toBe(expected)
  })

  test('is not sent on the only turn', () => {
    expect(said(state(), 1, { ...budgets, turns: 1 })).toBe(null)
    expect(said(state(), 2, { ...budgets, turns: 2 })).toBe('budget_turns')
  })

  test('is sent from the first byte of 85 % on, not after it', () => {
    const exact = { ...state(), bytes: 0.85 * byteBudget }
    expect(said(exact)).toBe('budget_bytes')
  })

  test('names the call to make: an end with evidence, or only the escalation while a write is not verified', () => {
    const reading = fold(logOf(looked('c1_0', [shard])), 1)
    const verifying = fold(logOf(looked('c1_0', [shard]), wrote('c2_0', [shard])), 1)
    expect(nearBudget(reading, 20, budgets)?.text).toMatch(/last turn.*resolve_incident.*escalate_incident/)
    expect(nearBudget(verifying, 20, budgets)?.text).toMatch(/last turn.*not verified.*escalate_incident/)
    expect(nearBudget(verifying, 20, budgets)?.text).not.toContain('resolve_incident')
  })
})
