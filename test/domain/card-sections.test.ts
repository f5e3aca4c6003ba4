import { describe, expect, test } from '@jest/globals'
import { cardSections, formatCost, shortSections } from '../../domain/card-sections.ts'

const approval = {
  tool: 'execute_migration',
  targets: [
    { kind: 'proposal' as const, id: 'prp_1' },
    ...['vm-1', 'vm-2', 'vm-3', 'vm-4'].map((id) => ({ kind: 'vm' as const, id })),
  ],
  reason: 'their host is dead',
  dryRun: {
    possible: true,
    summary: 'start 4 VMs',
    details: {},
    proof: { by: 'state' as const, text: 'they run' },
  },
  reversible: true,
  required: 1,
  approvals: 0,
  requestedAt: '2026-11-21T01:46:00.000000Z',
  expiresAt: '2026-11-21T02:46:00.000000Z',
}
const clock = (iso: string) => iso.slice(11, 16)
const told = (more: object = {}, isOpen = true) =>
  Object.fromEntries(
    cardSections({ ...approval, ...more }, { isOpen, moment: clock }).map(({ name, sentences }) => [name, sentences]),
  )
const warnings = (more: object = {}) =>
  cardSections({ ...approval, ...more }, { isOpen: true, moment: clock }).flatMap(({ name, warns }) =>
    warns ? [name] : [],
  )
const blind = { possible: false, summary: 'reboot', details: {}, proof: { by: 'nothing' as const, text: 'look' } }

describe('the card shows the consequences before a person decides', () => {
  test('the worst comes first, then the question, the reason, the proof, the way back, and the consequences of each answer', () => {
    expect(Object.keys(told())).toEqual(['cost', 'targets', 'reason', 'proof', 'back', 'approve', 'deny', 'wait'])
  })

  test('an approval says what runs on which targets', () => {
    expect(told().approve).toEqual([
      'The targets are read again. If they are unchanged, execute_migration runs at once on vm vm-1, vm vm-2, vm vm-3 and 1 more; otherwise you are asked again.',
    ])
  })

  test('an approval that needs two people starts nothing before the second', () => {
    expect(told({ required: 2 }).approve?.[0]).toMatch(/^Once another person approves, the targets are read again/)
    expect(told({ required: 3 }).approve?.[0]).toMatch(/^Once 2 more approve, the targets/)
    expect(told({ required: 2, approvals: 1 }).approve?.[0]).toMatch(/^The targets are read again/)
  })

  test('the card names the rule of the site that selects who decides, and its silence with the comment as foreign text', () => {
    const silence = {
      ...{ is: 'silenced', source: 'am', id: '7d1c', until: '2026-11-21T04:00:00.000Z', isSupposed: false },
      ...{ createdBy: 'be\u202erit', comment: `new disk\n${'x'.repeat(300)}` },
    }
    const site = { rule: 'theirs', line: 4, commit: null, demand: { people: 1, groups: [], members: null }, silence }
    const [rule, why = ''] = told({ dryRun: { ...approval.dryRun, details: { sitePolicy: site } } }).site ?? []
    expect(rule).toContain('requires approval')
    expect(why).toMatch(
      /^Silence 7d1c of am, until 2026-11-21 04:00 UTC, matches an alert of the incident\. be\ufffdrit made it: "new disk x+…"\.$/u,
    )
    expect(
      told({ dryRun: { ...approval.dryRun, details: { sitePolicy: { ...site, silence: undefined } } } }).site,
    ).toEqual([rule])
  })

  test('a denial and an expiry change nothing', () => {
    expect(told().deny?.[0]).toMatch(/^Nothing is changed\. The agent reads your reason/)
    expect(told({ askedBy: 'anna' }).deny?.[0]).toMatch(/the incident ends\. .* for anna\.$/)
    expect(told().wait).toEqual(['Nothing is changed. The approval expires at 02:46, and the incident is escalated.'])
  })

  test('the doubts list each VM that stays down with its reason, and what was not tried', () => {
    const details = {
      unplaced: [{ vm: 'vm-9', reason: 'no host has room' }, 'vm-8', { vm: 'vm-7' }],
      obstacle: 'it takes one host more',
      rehearsal: { untried: ['make was not tried.'] },
    }
    const against = [
      'make was not tried.',
      '3 VMs stay down.',
      'vm-9: no host has room',
      '"vm-8"',
      'vm-7',
      'There is no place for all: it takes one host more. It is not known whether a better choice exists.',
    ]
    expect(told({ dryRun: { ...approval.dryRun, details } }).against).toEqual(against)
  })

  test.each([
    ['of a quarter of an hour before is none', '2026-11-21T01:31:00.000000Z', undefined],
    [
      'that is older speaks against it',
      '2026-11-20T22:30:00.000000Z',
      ['The newest check is from 22:30, 3 h 16 before the request.'],
    ],
  ])('a read %s', (_, lookedAt, against) => {
    const sections = cardSections(approval, { isOpen: true, moment: clock, lookedAt })
    expect(sections.find(({ name }) => name === 'against')?.sentences).toEqual(against)
  })

  test("the incident's resource is shown beside targets that are other resources", () => {
    const on = (about: { kind: 'vm' | 'host'; id: string }) =>
      cardSections(approval, { isOpen: true, moment: clock, about }).find(({ name }) => name === 'targets')?.sentences
    expect(on({ kind: 'vm', id: 'vm-1' })).toEqual(['vm vm-1, vm vm-2, vm vm-3, vm vm-4'])
    expect(on({ kind: 'host', id: 'host-2' })).toContain('The incident is about host host-2.')
  })

  test('if the VMs that stay down are drawn, all other doubts are still listed', () => {
    const details = { unplaced: [{ vm: 'vm-9' }], rehearsal: { untried: ['make was not tried.'] } }
    const drawn = (more: object) =>
      cardSections(
        { ...approval, dryRun: { ...approval.dryRun, details } },
        { isOpen: true, moment: clock, maxNamed: 0, ...more },
      ).find(({ name }) => name === 'against')?.sentences
    expect(drawn({ lookedAt: '2026-11-20T22:30:00.000000Z' })).toEqual([
      'The newest check is from 22:30, 3 h 16 before the request.',
      'make was not tried.',
    ])
  })

  test('of a hundred VMs that stay down twenty are named and the others counted', () => {
    const unplaced = Array.from({ length: 100 }, (_, at) => ({ vm: `vm-${at}` }))
    const against = told({ dryRun: { ...approval.dryRun, details: { unplaced } } }).against
    expect(against).toContain('vm-19')
    expect(against).not.toContain('vm-20')
    expect(against).toContain('And 80 more.')
  })

  test('doubts, a missing proof and a missing way back are marked, so that nobody overlooks them', () => {
    expect(warnings()).toEqual([])
    expect(warnings({ reversible: false, dryRun: blind })).toEqual(['cost', 'proof', 'back'])
    expect(warnings({ dryRun: { ...approval.dryRun, proof: undefined } })).toEqual(['cost', 'proof'])
  })

  test('after the decision the card shows neither its cost nor the consequences of an answer', () => {
    expect(Object.keys(told({}, false))).toEqual(['targets', 'reason', 'proof', 'back'])
  })
})

describe('beside the buttons is the worst consequence of an approval', () => {
  const loss = (name: string, outcome: 'restarted' | 'not_found') => ({ name, outcome })
  const standing = { domain: 'rack', before: [loss('rack-b', 'restarted')], after: [loss('rack-b', 'not_found')] }
  test.each([
    ['that there is no way back first', { reversible: false }, 'The action cannot be undone.'],
    [
      'all that nobody can know',
      { reversible: false, dryRun: blind },
      'The action cannot be undone. No dry run showed its effect. Nothing can verify its result.',
    ],
    [
      'what the next death costs after a plan',
      { dryRun: { ...approval.dryRun, details: { standing } } },
      'If rack-b fails, no room for all its VMs was found; today it was.',
    ],
    [
      'whom the plan leaves down',
      { dryRun: { ...approval.dryRun, details: { unplaced: [{ vm: 'vm-9' }, { vm: 'vm-8' }] } } },
      '2 VMs stay down.',
    ],
    ['that none is known, where none is', {}, 'The action has no known cost and can be reversed.'],
  ])('%s', (_, more, cost) => {
    expect(formatCost({ ...approval, ...more })).toBe(cost)
    expect(told(more).cost).toEqual([cost])
    expect(shortSections({ ...approval, ...more }, clock)[0]?.sentences).toEqual([cost])
  })
})
