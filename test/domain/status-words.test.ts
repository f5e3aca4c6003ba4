import { expect, test } from '@jest/globals'
import type { Home, NeedLine } from '../../domain/incident-detail.ts'
import { describeNeed, describeTonight, formatShare } from '../../domain/status-words.ts'

const tonight: Home['tonight'] = {
  incidents: 305,
  closed: 49,
  resolved: 1,
  resolvedAlone: 1,
  unproven: 0,
  escalated: 33,
  medianSeconds: null,
  failedRepairs: 0,
  tokens: 0,
  dollars: 0,
}

test('Home and the reports show one ratio, of closed incidents and not of resolved ones', () => {
  const share = formatShare({ autoResolved: 1, closed: 49 })
  expect(share).toBe('2 %')
  expect(describeTonight(tonight)).toContain(`1 resolved, 1 of 49 closed without a person (${share})`)
  expect(describeTonight({ ...tonight, closed: 0, resolved: 0, resolvedAlone: 0 })).not.toContain('%')
})

test.each([
  ['agent', 'Escalated: by the agent'],
  ['code', 'Escalated: by Nightshift'],
  ['person', 'Escalated: by a person'],
] as const)('an escalation without a category says that it was escalated by the %s', (closedBy, said) => {
  const incident = { closedBy, alerts: { firing: 0, total: 1 }, owner: null }
  const line = { need: 'escalated', category: null, count: 1, incident, approval: null } as unknown as NeedLine
  expect(describeNeed(line)).toBe(said)
  expect(describeNeed({ ...line, count: 12 })).toBe('Escalated: without a category')
})
