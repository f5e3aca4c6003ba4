import { describe, expect, test } from '@jest/globals'
import fc from 'fast-check'
import { incidentStatus, resolveOutcome } from '../../domain/incident.ts'
import {
  attemptsPerDay,
  decideLifecycle,
  type Happening,
  type LifecycleDecision,
  type LifecycleView,
  nextCheckMs,
  type RepairCheck,
} from '../../domain/lifecycle.ts'

const now = Date.parse('2026-11-22T03:00:00Z')

const ago = (seconds: number) => now - seconds * 1000

const ahead = (seconds: number) => now + seconds * 1000

const rules = { settleSeconds: 900, settleMaxSeconds: 14_400, quietSeconds: 120 }

const hour = 3600

function view(change: Partial<LifecycleView>): LifecycleView {
  return {
    nowMs: now,
    status: 'open',
    outcome: null,
    closedBy: null,
    closedAtMs: null,
    isCritical: false,
    isOwned: false,
    alerts: { total: 1, firing: 1, unknown: 0, unproven: 0 },
    lastEndMs: null,
    lastAlertChangeMs: ago(hour),
    watchUntilMs: null,
    isRepairConfirmed: false,
    unreadableLooks: 0,
    look: null,
    isReminded: false,
    cancelledUntilMs: null,
    expectedUntilMs: null,
    attemptsToday: 1,
    ...change,
  }
}

const ended = (secondsAgo: number) => ({
  alerts: { total: 1, firing: 0, unknown: 0, unproven: 0 },
  lastEndMs: ago(secondsAgo),
})

const resolved = { status: 'resolved', closedBy: 'agent', closedAtMs: ago(600) } as const

const repaired = { ...resolved, outcome: 'repaired', watchUntilMs: ahead(300) } as const

const overdue = { ...repaired, closedAtMs: ago(1000), watchUntilMs: ago(100) } as const

const look = (
  verification: RepairCheck['verification'],
  resource: RepairCheck['resource'],
  secondsAgo = 10,
): RepairCheck => ({
  atMs: ago(secondsAgo),
  verification,
  resource,
})

const byPerson = { ...resolved, closedBy: 'person', outcome: 'no_fault' } as const

const escalated = { status: 'escalated', closedBy: 'agent', closedAtMs: ago(600) } as const

const cancelled = {
  status: 'cancelled',
  closedBy: 'person',
  closedAtMs: ago(600),
  cancelledUntilMs: ahead(600),
} as const

const expected = { ...resolved, closedBy: 'code', outcome: 'expected', expectedUntilMs: ahead(600) } as const

const usedUp = { attemptsToday: attemptsPerDay }

type Cell = [what: string, state: Partial<LifecycleView>, happening: Happening, decision: LifecycleDecision]

const cells: Cell[] = [
  ['open: a repeat counts', { status: 'open' }, 'repeat', { do: 'count' }],
  ['open: a new occurrence is a flap', { status: 'open' }, 'occurrence', { do: 'flap' }],
  ['open: an end alone closes nothing', { ...ended(0) }, 'end', { do: 'nothing' }],
  ['open: quiet for 119 s is not over', { ...ended(119) }, 'tick', { do: 'nothing' }],
  ['open: quiet for 120 s is over', { ...ended(120) }, 'tick', { do: 'close_quiet', by: 'ends' }],
  [
    'open without an alert: never over by itself',
    { alerts: { total: 0, firing: 0, unknown: 0, unproven: 0 } },
    'tick',
    { do: 'nothing' },
  ],
  ['investigating: a new occurrence is a flap', { status: 'investigating' }, 'occurrence', { do: 'flap' }],
  [
    'investigating: quiet for 120 s is told to the run',
    { status: 'investigating', ...ended(120) },
    'tick',
    { do: 'tell_run' },
  ],
  [
    'waiting for a person: 299 s are not enough',
    { status: 'awaiting_approval', ...ended(299) },
    'tick',
    { do: 'nothing' },
  ],
  ['waiting for a person: 300 s are', { status: 'awaiting_approval', ...ended(300) }, 'tick', { do: 'tell_run' }],

  ['repaired: a repeat counts', repaired, 'repeat', { do: 'count' }],
  [
    'repaired, of a sender without ends: the first repeat starts the watch',
    { ...repaired, watchUntilMs: null },
    'repeat',
    { do: 'start_watch' },
  ],
  ['repaired: while its time runs nothing is decided', repaired, 'tick', { do: 'nothing' }],
  ['repaired: its end ends the watch', { ...repaired, ...ended(0) }, 'end', { do: 'end_watch', word: 'over' }],
  [
    'repaired: nothing heard any more ends the watch with that word',
    { ...overdue, alerts: { total: 1, firing: 0, unknown: 1, unproven: 0 } },
    'tick',
    { do: 'end_watch', word: 'unknown' },
  ],
  ['repaired, overdue: code has to look first', overdue, 'tick', { do: 'look' }],
  [
    'repaired, overdue: a look from before the alert changed does not count',
    { ...overdue, look: look('held', 'nominal', 50), lastAlertChangeMs: ago(20) },
    'tick',
    { do: 'look' },
  ],
  [
    'repaired, overdue: a look from before the watch was over does not count',
    { ...overdue, look: look('held', 'nominal', 200) },
    'tick',
    { do: 'look' },
  ],
  [
    'repaired, overdue: held and nominal is told once',
    { ...overdue, look: look('held', 'nominal') },
    'tick',
    { do: 'confirm_repair', next: 'watch' },
  ],
  [
    'repaired, overdue: told already, it is watched on',
    { ...overdue, look: look('held', 'nominal'), isRepairConfirmed: true },
    'tick',
    { do: 'nothing' },
  ],
  [
    'repaired, overdue: unproven and nominal is told once',
    { ...overdue, look: look('unproven', 'nominal') },
    'tick',
    { do: 'confirm_repair', next: 'watch' },
  ],
  [
    'repaired, overdue: not held is the next attempt',
    { ...overdue, look: look('not_held', 'nominal') },
    'tick',
    { do: 'reopen', why: 'did_not_last' },
  ],
  [
    'repaired, overdue: held and nominal under a critical alert is for people at once',
    { ...overdue, isCritical: true, look: look('held', 'nominal') },
    'tick',
    { do: 'confirm_repair', next: 'escalate' },
  ],
  [
    'repaired, watched still: a critical alert gets its time to end',
    { ...repaired, isCritical: true, look: look('held', 'nominal') },
    'tick',
    { do: 'nothing' },
  ],
  [
    'repaired, overdue: held and degraded is the next attempt',
    { ...overdue, look: look('held', 'degraded') },
    'tick',
    { do: 'reopen', why: 'did_not_last' },
  ],
  [
    'repaired, overdue: unproven and nothing to look at is the next attempt',
    { ...overdue, look: look('unproven', null) },
    'tick',
    { do: 'reopen', why: 'did_not_last' },
  ],
  [
    'repaired, overdue: unreadable twice, it looks again',
    { ...overdue, look: look('open', 'nominal'), unreadableLooks: 2 },
    'tick',
    { do: 'look' },
  ],
  [
    'repaired, overdue: unreadable three times is the next attempt',
    { ...overdue, look: look('held', 'unknown'), unreadableLooks: 3 },
    'tick',
    { do: 'reopen', why: 'did_not_last' },
  ],
  [
    'repaired, overdue, attempts used up: escalated',
    { ...overdue, look: look('not_held', 'nominal'), ...usedUp },
    'tick',
    { do: 'escalate', code: 'DOES_NOT_LAST' },
  ],
  [
    'repaired, firing for four hours: escalated although it held',
    { ...overdue, closedAtMs: ago(4 * hour), isRepairConfirmed: true },
    'tick',
    { do: 'escalate', code: 'ALERT_GOES_ON' },
  ],
  ['repaired: a new occurrence is the next attempt', repaired, 'occurrence', { do: 'reopen', why: 'came_back' }],
  [
    'repaired, ended 31 min ago: a new occurrence is a new incident',
    { ...repaired, closedAtMs: ago(2 * hour), ...ended(1860) },
    'occurrence',
    { do: 'open_linked' },
  ],
  [
    'repaired, closed 31 min ago but ended just now: the same trouble',
    { ...repaired, closedAtMs: ago(1860), ...ended(10) },
    'occurrence',
    { do: 'reopen', why: 'came_back' },
  ],
  [
    'repaired, attempts used up: a new occurrence is escalated',
    { ...repaired, ...usedUp },
    'occurrence',
    { do: 'escalate', code: 'DOES_NOT_LAST' },
  ],

  [
    'over by itself: a repeat counts as a new occurrence',
    { ...resolved, outcome: 'self_resolved' },
    'repeat',
    { do: 'reopen', why: 'came_back' },
  ],
  [
    'no fault: a repeat counts as a new occurrence',
    { ...resolved, outcome: 'no_fault' },
    'repeat',
    { do: 'reopen', why: 'came_back' },
  ],
  [
    'answered: a repeat counts as a new occurrence',
    { ...resolved, outcome: 'answered' },
    'repeat',
    { do: 'reopen', why: 'came_back' },
  ],
  [
    'no fault, 31 min ago: a repeat is a new incident',
    { ...resolved, outcome: 'no_fault', closedAtMs: ago(1860) },
    'repeat',
    { do: 'open_linked' },
  ],
  ['no fault: an end is recorded', { ...resolved, outcome: 'no_fault', ...ended(0) }, 'end', { do: 'nothing' }],
  [
    'closed by version 0.1: a repeat is a new occurrence',
    { ...resolved, closedBy: null },
    'repeat',
    { do: 'reopen', why: 'came_back' },
  ],
  [
    'escalated by version 0.1: a repeat is a new occurrence',
    { ...escalated, closedBy: null },
    'repeat',
    { do: 'reopen', why: 'came_back' },
  ],

  ['closed by a person: a repeat counts', byPerson, 'repeat', { do: 'count' }],
  [
    'closed by a person, whatever they said: no attempt while it fires on',
    { ...byPerson, outcome: 'repaired', closedAtMs: ago(5 * hour), isReminded: true },
    'tick',
    { do: 'nothing' },
  ],
  [
    'closed by a person 15 min ago and firing: one reminder',
    { ...byPerson, closedAtMs: ago(900) },
    'tick',
    { do: 'remind' },
  ],
  [
    'closed by a person, reminded: the digest has it',
    { ...byPerson, closedAtMs: ago(5 * hour), isReminded: true },
    'tick',
    { do: 'nothing' },
  ],
  [
    'closed by a person: a new occurrence is the next attempt',
    byPerson,
    'occurrence',
    { do: 'reopen', why: 'came_back' },
  ],

  ['escalated: a repeat counts', escalated, 'repeat', { do: 'count' }],
  [
    'escalated: a new occurrence within a day is the next attempt',
    { ...escalated, ...ended(23 * hour) },
    'occurrence',
    { do: 'reopen', why: 'came_back' },
  ],
  [
    'escalated, attempts used up: a new occurrence is a flap',
    { ...escalated, ...ended(hour), ...usedUp },
    'occurrence',
    { do: 'flap' },
  ],
  [
    'escalated, taken: a new occurrence is for the owner',
    { ...escalated, ...ended(hour), isOwned: true },
    'occurrence',
    { do: 'flap_tell_owner' },
  ],
  [
    'escalated, over for a day: a new occurrence is a new incident',
    { ...escalated, closedAtMs: ago(30 * hour), ...ended(25 * hour) },
    'occurrence',
    { do: 'open_linked' },
  ],
  [
    'escalated: when all have ended it is quiet and stays theirs',
    { ...escalated, ...ended(0) },
    'end',
    { do: 'mark_quiet' },
  ],
  ['escalated: while another alert fires it is not quiet', { ...escalated, lastEndMs: now }, 'end', { do: 'nothing' }],

  ['cancelled: a repeat counts until then', cancelled, 'repeat', { do: 'count' }],
  ['cancelled: a new occurrence is a flap until then', cancelled, 'occurrence', { do: 'flap' }],
  [
    'cancelled: after that a repeat is investigated',
    { ...cancelled, cancelledUntilMs: ago(1) },
    'repeat',
    { do: 'reopen', why: 'cancellation_over' },
  ],
  [
    'cancelled: after that what still fires is investigated',
    { ...cancelled, cancelledUntilMs: ago(1) },
    'tick',
    { do: 'reopen', why: 'cancellation_over' },
  ],
  [
    'cancelled by version 0.1: for a day',
    { ...cancelled, cancelledUntilMs: null, closedAtMs: ago(23 * hour) },
    'repeat',
    { do: 'count' },
  ],
  [
    'cancelled by version 0.1: and then no more',
    { ...cancelled, cancelledUntilMs: null, closedAtMs: ago(25 * hour) },
    'repeat',
    { do: 'reopen', why: 'cancellation_over' },
  ],

  ['expected: nothing per repeat', expected, 'repeat', { do: 'count' }],
  ['expected: nothing while the mark is in force', expected, 'tick', { do: 'nothing' }],
  [
    'expected: the mark is over and it fires: the normal way',
    { ...expected, expectedUntilMs: ago(1) },
    'tick',
    { do: 'reopen', why: 'expectation_over' },
  ],
  ['expected: a new occurrence is looked at', expected, 'occurrence', { do: 'reopen', why: 'came_back' }],

  [
    'a crowd of ends: code looks at the resource',
    { alerts: { total: 1, firing: 0, unknown: 1, unproven: 0 }, lastEndMs: ago(200) },
    'tick',
    { do: 'look' },
  ],
  [
    'a crowd of ends: nominal closes as usual',
    { alerts: { total: 1, firing: 0, unknown: 1, unproven: 0 }, lastEndMs: ago(200), look: look(null, 'nominal') },
    'tick',
    { do: 'close_quiet', by: 'look' },
  ],
  [
    'an end that proves nothing, of what nobody can look at: quiet, unproven',
    { alerts: { total: 1, firing: 0, unknown: 0, unproven: 1 }, lastEndMs: ago(200), look: look(null, null) },
    'tick',
    { do: 'close_quiet', by: 'nothing' },
  ],
  [
    'an end that proves nothing ends no investigation',
    {
      status: 'investigating',
      alerts: { total: 1, firing: 0, unknown: 0, unproven: 1 },
      lastEndMs: ago(200),
      look: look(null, null),
    },
    'tick',
    { do: 'nothing' },
  ],
  [
    'escalated: an end that proves nothing is no news',
    { ...escalated, alerts: { total: 1, firing: 0, unknown: 0, unproven: 1 } },
    'end',
    { do: 'nothing' },
  ],
  [
    'a crowd of ends: degraded waits',
    { alerts: { total: 1, firing: 0, unknown: 1, unproven: 0 }, lastEndMs: ago(200), look: look(null, 'degraded') },
    'tick',
    { do: 'nothing' },
  ],
]

const anyView: fc.Arbitrary<LifecycleView> = fc.record({
  nowMs: fc.constant(now),
  status: fc.constantFrom(...incidentStatus.options),
  outcome: fc.option(fc.constantFrom(...resolveOutcome.options)),
  closedBy: fc.option(fc.constantFrom('agent', 'person', 'code')),
  closedAtMs: fc.option(fc.integer({ min: ago(48 * hour), max: now })),
  isOwned: fc.boolean(),
  alerts: fc.record({
    total: fc.constant(3),
    firing: fc.integer({ min: 0, max: 2 }),
    unknown: fc.integer({ min: 0, max: 1 }),
  }),
  lastEndMs: fc.option(fc.integer({ min: ago(48 * hour), max: now })),
  lastAlertChangeMs: fc.option(fc.integer({ min: ago(48 * hour), max: now })),
  watchUntilMs: fc.option(fc.integer({ min: ago(hour), max: ahead(hour) })),
  isRepairConfirmed: fc.boolean(),
  unreadableLooks: fc.integer({ min: 0, max: 4 }),
  look: fc.option(
    fc.record({
      atMs: fc.integer({ min: ago(hour), max: now }),
      verification: fc.option(fc.constantFrom('held', 'not_held', 'open', 'unproven')),
      resource: fc.option(fc.constantFrom('nominal', 'degraded', 'unknown')),
    }),
  ),
  isReminded: fc.boolean(),
  cancelledUntilMs: fc.option(fc.integer({ min: ago(hour), max: ahead(hour) })),
  expectedUntilMs: fc.option(fc.integer({ min: ago(hour), max: ahead(hour) })),
  attemptsToday: fc.integer({ min: 0, max: 5 }),
}) as fc.Arbitrary<LifecycleView>

describe('the effect of an alert on its incident', () => {
  test.each(cells)('%s', (_what, state, happening, decision) => {
    expect(decideLifecycle(view(state), happening, rules)).toEqual(decision)
  })
})

describe('for every state of the rows', () => {
  test('every event has a result, and no new firing after the end is only counted', () => {
    let begun = 0
    fc.assert(
      fc.property(anyView, fc.constantFrom<Happening>('repeat', 'occurrence', 'end', 'tick'), (state, happening) => {
        const decision = decideLifecycle(state, happening, rules)
        expect(decision.do).toBeTruthy()
        if (happening !== 'occurrence') return
        begun += 1
        expect(['count', 'nothing']).not.toContain(decision.do)
      }),
      { numRuns: 5_000 },
    )
    expect(begun).toBeGreaterThan(500)
  })

  test('nothing starts an attempt against the owner of an incident', () => {
    let owned = 0
    fc.assert(
      fc.property(anyView, fc.constantFrom<Happening>('repeat', 'occurrence', 'end', 'tick'), (state, happening) => {
        const decision = decideLifecycle({ ...state, isOwned: true }, happening, rules)
        if (state.status === 'open' || state.status === 'investigating') return
        owned += 1
        expect(['reopen', 'open_linked', 'remind', 'escalate']).not.toContain(decision.do)
      }),
      { numRuns: 5_000 },
    )
    expect(owned).toBeGreaterThan(500)
  })

  test('a closed incident whose alert keeps firing after a repair always has a next read', () => {
    fc.assert(
      fc.property(anyView, (state) => {
        const watched: LifecycleView = {
          ...state,
          status: 'resolved',
          outcome: 'repaired',
          closedBy: 'agent',
          closedAtMs: ago(100),
          watchUntilMs: ahead(800),
          alerts: { total: 1, firing: 1, unknown: 0, unproven: 0 },
        }
        expect(nextCheckMs(watched, rules)).not.toBeNull()
      }),
    )
  })
})
