import fc from 'fast-check'
import { type SitePolicy, sitePolicy } from '../../../domain/site-policy.ts'
import type { ReferenceThing } from './reference.ts'

/** Policies and things by chance, of few words each, so that rules and calls meet. */
export const hosts = ['web-1', 'web-2', 'db-1']
const kinds = ['host', 'vm', 'shard'] as const
export const types = ['disk_full', 'vm_stopped', 'host_down']
export const writes = ['service_start', 'vm_start', 'converge_shard', 'vm_stop', 'vm_restart', 'exec']
const looks = ['get_host', 'get_shard']
const people = ['ada', 'bo', 'cy']
const labelKeys = ['env', 'tier']
const labelValues = ['prod', 'test', 'gold']

const some = <T>(values: readonly T[]) =>
  fc.oneof(fc.constantFrom(...values), fc.subarray([...values], { minLength: 1 })) as fc.Arbitrary<T | T[]>

const two = (figure: number) => String(figure).padStart(2, '0')

const rrule = fc.oneof(
  fc.constantFrom(
    'FREQ=DAILY',
    'FREQ=DAILY;INTERVAL=3',
    'FREQ=YEARLY',
    'FREQ=DAILY;COUNT=40',
    'FREQ=DAILY;UNTIL=20261110',
  ),
  fc
    .subarray(['MO', 'TU', 'WE', 'TH', 'FR', 'SA', 'SU'], { minLength: 1 })
    .map((days) => `FREQ=WEEKLY;BYDAY=${days.join()}`),
  fc.constantFrom('FREQ=WEEKLY;INTERVAL=2;BYDAY=SU,MO', 'FREQ=MONTHLY;BYMONTHDAY=1,-1', 'FREQ=MONTHLY;BYMONTHDAY=25'),
)

/** Around the two nights of 2026 on which clocks change there. */
const day = fc.constantFrom('2026-01-01', '2026-03-28', '2026-03-29', '2026-10-24', '2026-10-25', '2026-11-01')

/** Windows and moments fall on quarters of an hour, so that moments fall on their edges. */
const quarters = (min: number, max: number) =>
  fc.integer({ min: Math.ceil(min / 15), max: Math.floor(max / 15) }).map((quarter) => quarter * 15)

const window = fc
  .record({
    timezone: fc.constantFrom('Europe/Oslo', 'America/New_York', 'UTC', 'Australia/Lord_Howe', 'Asia/Kolkata'),
    day,
    at: quarters(0, 24 * 60 - 1),
    minutes: fc.oneof(quarters(15, 300), quarters(300, 4_000)),
    rrule: fc.option(rrule, { nil: undefined }),
  })
  .map(({ timezone, day, at, minutes, rrule }) => {
    const start = `${day}T${two(Math.floor(at / 60))}:${two(at % 60)}`
    const end = new Date(Date.parse(`${start}:00Z`) + minutes * 60_000).toISOString().slice(0, 16)
    return { timezone, start, end, ...(rrule && { rrule }) }
  })

const resource = fc.oneof(
  fc.record({ kind: some(kinds) }),
  fc.record({ kind: fc.constantFrom(...kinds), id: some(hosts) }),
  fc.record(
    { kind: some(kinds), labels: fc.dictionary(fc.constantFrom(...labelKeys), some(labelValues), { minKeys: 1 }) },
    { requiredKeys: ['labels'] },
  ),
)

/** A rule with more than two conditions seldom fits anything. */
const conditions = fc.subarray(['tool', 'resource', 'type', 'during', 'silenced'] as const, {
  minLength: 1,
  maxLength: 2,
})

const rule = fc
  .record({
    has: conditions,
    tool: fc.oneof(some(writes), some(looks)),
    resource,
    type: some(types),
    during: some(['one', 'two']),
    silenced: fc.constant(true),
    action: fc.constantFrom('never' as const, 'ask' as const, 'run' as const, 'run' as const),
    group: fc.constantFrom(undefined, 'dbas', 'web'),
    people: fc.constantFrom(undefined, 1, 2),
  })
  .map(({ has, action, group, people, ...parts }) => ({
    ...Object.fromEntries(has.map((part) => [part, parts[part]])),
    action: has.includes('silenced') && action === 'run' ? 'ask' : action,
    ...(action === 'ask' && { ...(group && { group }), ...(people && { people }) }),
  }))

export const anyPolicy: fc.Arbitrary<SitePolicy> = fc
  .record({
    version: fc.constant(1),
    groups: fc.record({
      dbas: fc.subarray(people, { minLength: 1 }),
      web: fc.subarray(people, { minLength: 1 }),
    }),
    windows: fc.record({ one: window, two: window }),
    rules: fc.array(rule, { maxLength: 8 }),
  })
  .map((policy) =>
    sitePolicy.parse({ ...policy, rules: policy.rules.map((each, at) => ({ name: `rule ${at}`, ...each })) }),
  )

const name = fc.record({ kind: fc.constantFrom(...kinds), id: fc.constantFrom(...hosts) })

export const anyThing: fc.Arbitrary<ReferenceThing> = fc.record({
  names: fc.array(name, { minLength: 1, maxLength: 2 }),
  labels: fc.dictionary(
    fc.constantFrom(...labelKeys),
    fc.array(fc.constantFrom(...labelValues), { minLength: 1, maxLength: 2 }),
  ),
})

/** Most within the nights of a clock change, where windows differ most. */
const momentsBetween = (from: string, to: string) =>
  quarters(Date.parse(from) / 60_000, Date.parse(to) / 60_000).map((minute) => minute * 60_000)

export const anyMoment = fc.oneof(
  momentsBetween('2026-03-28T12:00Z', '2026-03-30T12:00Z'),
  momentsBetween('2026-10-24T12:00Z', '2026-10-26T12:00Z'),
  momentsBetween('2026-01-01T00:00Z', '2027-06-01T00:00Z'),
)

export const anyTool = fc.oneof(fc.constantFrom(...writes), fc.constantFrom(...writes), fc.constantFrom(...looks))
export const isLook = (tool: string): boolean => looks.includes(tool)
