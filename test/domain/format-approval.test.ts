import { describe, expect, test } from '@jest/globals'
import { formatApprovalEnd, formatConsequences, formatCost, parseRehearsal } from '../../domain/format-approval.ts'

const approval = {
  tool: 'execute_migration',
  targets: [
    { kind: 'proposal' as const, id: 'prp_1' },
    ...['vm-1', 'vm-2', 'vm-3', 'vm-4'].map((id) => ({ kind: 'vm' as const, id })),
  ],
  dryRun: {
    possible: true,
    summary: 'start 4 VMs',
    details: {},
    proof: { by: 'state' as const, text: 'they run' },
  },
  reversible: true,
  required: 1,
  approvals: 0,
  expiresAt: '2026-11-21T02:46:00.000000Z',
}
const told = (more: object = {}) => formatConsequences({ ...approval, ...more }, (iso) => iso.slice(11, 16))

describe('before a person decides, the card says what follows', () => {
  test('from yes: what runs on what, what proves it, and whether it can be reversed', () => {
    expect(told().approve).toBe(
      'The targets are read again. If they are unchanged, execute_migration runs at once on vm vm-1, vm vm-2, vm vm-3 and 1 more; otherwise you are asked again. Afterwards code checks whether it worked. It can be reversed.',
    )
  })

  test('from yes where two people must agree: nothing before the other has', () => {
    expect(told({ required: 2 }).approve).toMatch(/^Once another person approves, the targets are read again/)
    expect(told({ required: 3 }).approve).toMatch(/^Once 2 more approve, the targets/)
    expect(told({ required: 2, approvals: 1 }).approve).toMatch(/^The targets are read again/)
  })

  test('from yes where there was no dry run, no proof and no way back', () => {
    const dryRun = { possible: false, summary: 'reboot', details: {}, proof: { by: 'nothing', text: 'look' } }
    expect(told({ dryRun, reversible: false }).approve).toMatch(
      /It had no dry run: .* Afterwards nothing proves that it worked\. It cannot be undone\.$/,
    )
  })

  test('from no and from silence: nothing is changed', () => {
    expect(told().deny).toMatch(/^Nothing is changed\. The agent reads your reason/)
    expect(told().wait).toBe('Nothing is changed. The question expires at 02:46, and the incident is escalated.')
  })
})

describe('beside the buttons stands the worst that a yes costs', () => {
  const none = { possible: false, summary: 'reboot', details: {}, proof: { by: 'nothing' as const, text: 'look' } }
  const loss = (name: string, outcome: 'restarted' | 'not_found') => ({ name, outcome })
  const standing = { domain: 'rack', before: [loss('rack-b', 'restarted')], after: [loss('rack-b', 'not_found')] }
  test.each([
    ['that there is no way back first', { reversible: false }, 'It cannot be undone.'],
    [
      'all that nobody can know',
      { reversible: false, dryRun: none },
      'It cannot be undone. It had no dry run: what it will do is not known beforehand. Afterwards nothing proves that it worked.',
    ],
    [
      'what the next death costs after a plan',
      { dryRun: { ...approval.dryRun, details: { standing } } },
      'Should rack-b fail, no room for all its VMs was found; today it was.',
    ],
    ['that none is known, where none is', {}, 'No cost of it is known, and it can be reversed.'],
  ])('%s', (_, more, cost) => {
    expect(formatCost({ ...approval, ...more })).toBe(cost)
  })
})

test.each([
  ['expired', /nothing was changed/],
  ['denied', /nothing was changed/],
  ['withdrawn', /nothing was changed/],
  ['approved', /has not started yet/],
  ['consumed', /the incident shows/],
] as const)('an approval that is %s says what became of the platform', (status, words) => {
  expect(formatApprovalEnd({ status })).toMatch(words)
})

test('an approval that waits says nothing of the kind', () => {
  expect(formatApprovalEnd({ status: 'pending' })).toBeNull()
})

test('a rehearsal is read line by line: what was found, the diff, the checks, and what was not tried', () => {
  const rehearsal = {
    told: ['runs as user 7'],
    untried: ['make was not tried: no way is known.'],
    tried: false,
    diff: '-a\n+b\n',
    checks: [{ argv: ['nginx', '-t'], exit_code: 1, output: 'no\n' }],
    truncated: true,
  }
  expect(parseRehearsal({ rehearsal })).toEqual({
    lines: ['runs as user 7', '-a', '+b', 'check nginx -t ended with 1', '  no', 'This is not all of it.'],
    untried: ['make was not tried: no way is known.'],
  })
})

test('that nothing would change is told only of what was tried in a copy', () => {
  expect(parseRehearsal({ rehearsal: { diff: '', checks: [], would_change: false } })?.lines).toEqual([
    'Tried in a copy: it would change nothing.',
  ])
  expect(parseRehearsal({ rehearsal: { told: [], untried: ['It was not tried.'] } })).toEqual({
    lines: [],
    untried: ['It was not tried.'],
  })
})

test('why there is none is a sentence, and what is no rehearsal is left to be shown as it is', () => {
  expect(parseRehearsal({ notRehearsed: 'it cannot be rehearsed' })).toEqual({
    lines: [],
    untried: ['Not rehearsed: it cannot be rehearsed'],
  })
  expect(parseRehearsal({ steps: [] })).toBeNull()
  expect(parseRehearsal({ rehearsal: { told: 'not lines' } })).toBeNull()
})
