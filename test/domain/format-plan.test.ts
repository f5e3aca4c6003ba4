import { expect, test } from '@jest/globals'
import {
  formatAfterwards,
  formatOvertaken,
  formatPlanProof,
  formatStanding,
  formatWhyDown,
  readStaysDown,
  toTriageTold,
} from '../../domain/format-plan.ts'
import { planOfDryRun, type Triage } from '../../domain/placement.ts'

const planned = { state: 'planned', migrations: 2, lowerBound: 2 } as const

test('the number of migrations is not called minimal unless it is proved', () => {
  const certificate = { kind: 'certificate', k: 1, scale: 100, price: { '1/1': 3, '2/2': 5 } } as const
  expect(formatPlanProof(planned, certificate)).toBe(
    '2 migrations, and no plan needs fewer (certificate: k = 1, 2 prices)',
  )
  expect(formatPlanProof(planned, 'engine')).toBe(
    "2 migrations, and no plan needs fewer (a solver's claim, not checked)",
  )
  expect(formatPlanProof({ ...planned, lowerBound: 1 }, 'certificate')).toBe(
    '2 migrations; at least 1 are needed (certificate), whether fewer than 2 are enough is not known',
  )
  expect(formatPlanProof({ ...planned, lowerBound: 0 })).toBe('2 migrations; whether fewer are enough is not known')
  // The bound is for a plan for all: of one that leaves some down it says nothing.
  expect(formatPlanProof({ state: 'partial', migrations: 1, lowerBound: 1 }, 'certificate')).toBe('1 migration')
  expect(formatPlanProof({})).toBe('')
})

test('the effects of one more failure are listed by name, and those that the plan made worse apart', () => {
  const loss = (outcomes: ('restarted' | 'moved' | 'not_found')[]) =>
    outcomes.map((outcome, index) => ({ name: `h${index + 1}`, outcome }))
  const before = loss(['restarted', 'restarted', 'not_found'])
  expect(formatStanding({ domain: 'host', before, after: loss(['restarted', 'moved', 'not_found']) })).toBe(
    'If one more host fails: all its VMs restart for 1 of 3 hosts; if it is h2, its VMs restart only after others have moved; ' +
      'if it is h3, no room for all its VMs was found. Worse than before the plan: h2.',
  )
  const lacks = { ramMib: 8_192, cpuMc: 0 }
  const short = before.map((each) => (each.outcome === 'not_found' ? { ...each, lacks } : each))
  expect(formatStanding({ domain: 'host', before, after: short })).toContain(
    'there is no room for all VMs of h3 (short by 8192 MiB of RAM)',
  )
  expect(formatStanding({ domain: 'rack', before, after: before })).toContain('No worse than before the plan.')
  expect(formatStanding({ domain: 'host', before, after: loss(['restarted', 'restarted', 'restarted']) })).toBe(
    'If any one of 3 hosts fails, all its VMs restart.',
  )
})

test('among VMs that stay down while less important ones get a place, the most important is named first', () => {
  const down = (vm: string, priority: number, overtakenBy?: string[]) => ({
    vm,
    reason: 'rack spread of g',
    priority,
    ...(overtakenBy ? { overtakenBy } : {}),
  })
  expect(formatOvertaken([down('a', 0), down('b', 80, ['c']), down('d', 100, ['c'])])).toEqual([
    'd (priority 100) and 1 more stay down while VMs of lower priority get a place',
  ])
  expect(formatOvertaken([down('b', 80, ['c'])])).toEqual([
    'b (priority 80) stays down while VMs of lower priority get a place',
  ])
  expect(formatOvertaken([{ vm: 'a', reason: 'no room' }])).toEqual([])
})

const levelOf = (priority: number) => ({
  priority,
  down: 1,
  scale: 1,
  ramUnit: 1,
  cpuUnit: 1,
  weights: {},
  price: {},
})
const certificate = (...priorities: number[]) => ({ proof: 'certificate' as const, levels: priorities.map(levelOf) })
const notKnown = 'It is not known whether a better choice exists.'

test.each<[string, number[], Triage | undefined, string | null, string]>([
  [
    'a certificate',
    [50],
    certificate(50),
    null,
    'No choice leaves fewer of priority 50 down without leaving more important VMs down (certificate).',
  ],
  [
    'one of all',
    [50, 10, 0],
    certificate(50, 10, 0),
    null,
    'No choice leaves fewer of priority 50, 10 and 0 down without leaving more important VMs down (certificate).',
  ],
  [
    'the least important',
    [0, 0],
    certificate(0),
    null,
    'No choice leaves fewer of priority 0 down without leaving more important VMs down (certificate).',
  ],
  [
    'one of the highest',
    [50, 10, 0],
    certificate(50),
    null,
    'No choice leaves fewer of priority 50 down without leaving more important VMs down (certificate); whether a choice leaves fewer of priority 10 and 0 is not known.',
  ],
  [
    "a solver's claim",
    [50],
    { proof: 'engine' },
    null,
    "No choice leaves fewer of priority 50 down without leaving more important VMs down (a solver's claim, not checked).",
  ],
  [
    "a solver's claim and a certificate of the highest",
    [50, 10],
    { ...certificate(50), proof: 'engine' },
    null,
    "No choice leaves fewer of priority 50 down without leaving more important VMs down (certificate), nor of priority 10 (a solver's claim, not checked).",
  ],
  [
    'every possibility',
    [5],
    { proof: 'exhausted' },
    null,
    'No choice leaves fewer of priority 5 down without leaving more important VMs down (every possibility was tried).',
  ],
  ['what is in the way of all', [5], undefined, 'RAM is short', `There is no place for all: RAM is short. ${notKnown}`],
  [
    'both',
    [5],
    certificate(5),
    'RAM is short',
    'There is no place for all: RAM is short. No choice leaves fewer of priority 5 down without leaving more important VMs down (certificate).',
  ],
  ['nothing', [5], undefined, null, 'No better plan was found in time. A place for all may exist.'],
])('a VM that a plan leaves down gets only the proved reason: %s', (_, priorities, triage, obstacle, words) => {
  const unplaced = priorities.map((priority, index) => ({ vm: `v${index}`, reason: 'no room', priority }))
  expect(formatWhyDown({ unplaced, obstacle, triage: toTriageTold(triage) })).toBe(words)
  // The card reads the same out of a dry run, whatever else is in it.
  expect(formatWhyDown(readStaysDown({ unplaced, obstacle, triage: toTriageTold(triage) }))).toBe(words)
})

test('a dry run with an unknown form of proof claims none', () => {
  const unplaced = [{ vm: 'a', reason: 'no room', priority: 5 }]
  for (const triage of ['certificate', { proof: 'oath', certified: [5] }, { proof: 'engine' }])
    expect(readStaysDown({ unplaced, obstacle: null, triage }).triage).toBeNull()
})

test('the plan of an approval is read in the form of 0.1.0 and in the current form', () => {
  const step = { step: 1, action: 'start', vm: 'a', from: 'x', to: 'h', needs: [], wave: 1 }
  const old = planOfDryRun({ steps: [step], state: 'partial', unplaced: [{ vm: 'b', reason: 'no room' }] })
  expect(old).toMatchObject({ steps: [step], unplaced: [{ vm: 'b', reason: 'no room' }] })
  const now = {
    steps: [{ ...step, priority: 100, haGroup: 'g' }],
    unplaced: [{ vm: 'b', reason: 'rack spread of g', priority: 80, haGroup: null, overtakenBy: ['a'] }],
  }
  expect(planOfDryRun(now)).toMatchObject(now)
})

test("the later cost of a plan is shown beside the buttons, with today's state", () => {
  const loss = (outcomes: ('restarted' | 'moved' | 'not_found')[]) =>
    outcomes.map((outcome, index) => ({ name: `h${index + 1}`, outcome }))
  const afterwards = (before: Parameters<typeof loss>[0], after: Parameters<typeof loss>[0]) =>
    formatAfterwards({ domain: 'host', before: loss(before), after: loss(after) })
  expect(afterwards(['restarted', 'restarted'], ['restarted', 'not_found'])).toBe(
    'if h2 fails, no room for all its VMs was found; today it was',
  )
  expect(afterwards(['not_found', 'restarted'], ['not_found', 'not_found'])).toBe(
    'if h2 fails, no room for all its VMs was found; today it was; for h1 it is not found today either',
  )
  expect(afterwards(['not_found', 'moved'], ['not_found', 'moved'])).toBe(
    'if h1 fails, no room for all its VMs was found, as today',
  )
  expect(afterwards(['not_found', 'moved'], ['restarted', 'moved'])).toBeNull()
  const lacks = { ramMib: 8_192, cpuMc: 0 }
  const short = [{ name: 'h1', outcome: 'not_found' as const, lacks }]
  expect(formatAfterwards({ domain: 'host', before: loss(['restarted']), after: short })).toBe(
    'if h1 fails, there is no room for all its VMs; today there is',
  )
})
