import { expect, test } from '@jest/globals'
import fc from 'fast-check'
import { type SitePolicy, sitePolicy } from '../../../domain/site-policy.ts'
import { compilePolicy } from '../../../safety/site/compile.ts'
import { widens } from '../../../safety/site/widens.ts'
import { anyMoment, anyPolicy, anyThing, anyTool, isLook, types } from './policies.ts'
import { type ReferenceAnswer, readPlainly } from './reference.ts'

const compiled = (policy: SitePolicy) => compilePolicy(policy, { digest: '', commit: null })

/**
 * Changes as people make them: rules added, removed, moved and made stricter or laxer, and a group
 * that grows.
 */
const change = fc.record({
  kind: fc.constantFrom('add', 'remove', 'move', 'never', 'people', 'group', 'none'),
  at: fc.nat(8),
  to: fc.nat(8),
})
type Change = { kind: string; at: number; to: number }

function changed(policy: SitePolicy, other: SitePolicy, { kind, at, to }: Change): SitePolicy {
  const rules = [...policy.rules]
  const place = at % Math.max(1, rules.length)
  const groups = { ...policy.groups }
  if (kind === 'add' && other.rules[0])
    rules.splice(to % (rules.length + 1), 0, { ...other.rules[0], name: `new ${at}` })
  if (kind === 'remove') rules.splice(place, 1)
  if (kind === 'move') rules.splice(to % Math.max(1, rules.length), 0, ...rules.splice(place, 1))
  const rule = rules[place]
  if (kind === 'never' && rule) {
    const { group: _, people: __, ...rest } = rule
    rules[place] = { ...rest, action: 'never' }
  }
  if (kind === 'people' && rule?.action === 'ask') rules[place] = { ...rule, people: 2 }
  if (kind === 'group') groups.dbas = at % 2 === 0 ? ['ada', 'bo', 'cy'] : ['ada']
  return sitePolicy.parse({ ...policy, groups, rules })
}

/**
 * Is one answer at least as strict as another? `run` without names leaves the kernel's answer as it
 * is.
 */
function isAsStrict(now: ReferenceAnswer, before: ReferenceAnswer): boolean {
  const strength = (answer: ReferenceAnswer) =>
    answer === null || (answer.action === 'run' && !answer.isNamed) ? 1 : { never: 3, ask: 2, run: 0 }[answer.action]
  if (strength(now) !== strength(before)) return strength(now) > strength(before)
  if (now?.action !== 'ask' || before?.action !== 'ask') return true
  const isWithin = before.members === null || (now.members?.every((each) => before.members?.includes(each)) ?? false)
  return now.people >= before.people && isWithin
}

const anyCall = fc.record({
  things: fc.array(anyThing, { maxLength: 2 }),
  tool: anyTool,
  type: fc.constantFrom(...types),
  nowMs: anyMoment,
  isSilenced: fc.boolean(),
})

test('a policy that counts as narrower allows nothing that the policy before did not', () => {
  const counts = { narrower: 0, wider: 0 }
  fc.assert(
    fc.property(
      anyPolicy,
      anyPolicy,
      fc.array(change, { minLength: 1, maxLength: 2 }),
      fc.array(anyCall, { minLength: 6, maxLength: 6 }),
      (before, other, changes, calls) => {
        const after = changes.reduce((policy, each) => changed(policy, other, each), before)
        const isNarrower = widens(compiled(before), compiled(after)).length === 0
        counts[isNarrower ? 'narrower' : 'wider'] += 1
        if (!isNarrower) return
        for (const call of calls) {
          const does = isLook(call.tool) ? ('look' as const) : ('write' as const)
          const [was, is] = [readPlainly(before, { ...call, does }), readPlainly(after, { ...call, does })]
          expect([was, is, isAsStrict(is, was)]).toEqual([was, is, true])
        }
      },
    ),
    { numRuns: Number(process.env.POLICIES ?? 250) },
  )
  expect(counts.narrower).toBeGreaterThan(50)
  expect(counts.wider).toBeGreaterThan(50)
})

const file = (...rules: SitePolicy['rules']) =>
  compiled(
    sitePolicy.parse({
      version: 1,
      groups: { dbas: ['ada', 'bo'] },
      rules: rules.map((rule, at) => ({ ...rule, name: `r${at}` })),
    }),
  )
const onDatabases = { kind: 'database' } as const
const start = { name: '', tool: 'vm_start', resource: { kind: 'vm', id: 'vm-1' }, action: 'run' } as const
const asked = { name: '', resource: onDatabases, action: 'ask', group: 'dbas' } as const
const forbidden = { name: '', tool: 'vm_stop', action: 'never' } as const

test('the first file widens by the calls that it lets run, and by nothing else', () => {
  expect(widens(null, file(asked, forbidden))).toEqual([])
  expect(widens(null, file(forbidden, start))).toEqual([
    '"r1" (line 2) now says run; before, only the built-in rules decided',
  ])
})

test('a rule that refuses may be added anywhere, and one that lets run may be removed, and not the reverse', () => {
  expect(widens(file(asked, start), file(forbidden, asked, start))).toEqual([])
  expect(widens(file(asked, start), file(asked))).toEqual([])
  expect(widens(file(forbidden, asked), file(asked)).at(-1)).toBe('no rule decides now; before, "r0" said never')
})

test('a question before a refusal widens, and behind it does not', () => {
  const all = { name: '', tool: 'vm_stop', action: 'ask' } as const
  expect(widens(file(forbidden), file(all, forbidden))).toEqual([
    '"r0" (line 1) now says ask 1; before, "r0" said never',
  ])
  expect(widens(file(forbidden), file(forbidden, asked))).toEqual([])
})

test('more people, or a group instead of anybody, is narrower, and anybody instead of a group is not', () => {
  expect(widens(file(asked), file({ ...asked, people: 2 }))).toEqual([])
  const { group: _, ...anybody } = asked
  expect(widens(file(anybody), file(asked))).toEqual([])
  expect(widens(file(asked), file(anybody))).toHaveLength(1)
})

test('a rule that gains `silenced` widens, one that loses it does not, and a new one with it narrows', () => {
  const silenced = { ...asked, silenced: true } as const
  expect(widens(file(asked), file(silenced))).toEqual(['no rule decides now; before, "r0" said ask 1 of dbas'])
  expect(widens(file(silenced), file(asked))).toEqual([])
  expect(widens(file(start), file(silenced, start))).toEqual([])
  expect(widens(file(silenced), file(silenced))).toEqual([])
  expect(widens(file(silenced), file())).toHaveLength(1)
  // In front of a stricter one it loosens nothing, and in its place it does.
  const asks = { ...forbidden, action: 'ask', silenced: true } as const
  expect(widens(file(forbidden), file(asks, forbidden))).toEqual([])
  expect(widens(file(forbidden), file(asks))).toHaveLength(1)
  expect(widens(file({ ...forbidden, silenced: true }), file(asks))).toHaveLength(2)
})

test('the same file widens nothing, and a thousand rules of which one changed are compared', () => {
  const many = Array.from({ length: 999 }, (_, at) => ({
    ...start,
    resource: { kind: 'vm' as const, id: `vm-${at}` },
    action: at % 2 === 0 ? ('run' as const) : ('never' as const),
  }))
  expect(widens(file(...many), file(...many))).toEqual([])
  expect(widens(file(...many), file(...many, forbidden))).toEqual([])
  expect(widens(file(...many), file(...many, { ...start, tool: 'vm_restart' }))).toHaveLength(1)
})
