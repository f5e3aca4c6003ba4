import { expect, test } from '@jest/globals'
import type { Plan } from '../../domain/placement.ts'
import { InvalidProblemError } from '../../placement/certificate.ts'
import { findFalseClaim } from '../../placement/claims.ts'
import { readPlanFile, type WrittenPlan } from '../../placement/plan-file.ts'
import { solve } from '../../placement/solve.ts'
import { verifyPlan } from '../../placement/verify.ts'
import { patienceMs } from '../support/directory.ts'
import { dead, down, host, odd, problem, vm } from './problems.ts'

/**
 * After the move of `small`, `big` fits on a; `low` is less important, and `last` finds no room.
 */
const given = problem(
  [host('a', 8), host('b', 4), host('x', 16, dead)],
  [
    vm('small', 2, 'a', { haGroup: 'g' }),
    vm('big', 6, 'x', { ...down, priority: 5 }),
    vm('low', 2, 'x', down),
    vm('last', 5, 'x', { ...down, priority: 9 }),
  ],
)
const plan: WrittenPlan = {
  state: 'partial',
  steps: [
    { step: 1, action: 'start', vm: 'big', from: 'x', to: 'a', needs: [], wave: 1, priority: 5, haGroup: null },
    { step: 2, action: 'start', vm: 'low', from: 'x', to: 'b', needs: [], wave: 1, priority: 0, haGroup: null },
  ],
  migrations: 0,
  lowerBound: 0,
  proof: { kind: 'trivial' },
  unplaced: [{ vm: 'last', reason: 'no room', priority: 9, haGroup: null, overtakenBy: ['big', 'low'] }],
  obstacle: null,
  standing: {
    domain: 'host',
    before: [
      { name: 'a', outcome: 'restarted' },
      { name: 'b', outcome: 'restarted' },
    ],
    after: [
      { name: 'a', outcome: 'not_found' },
      { name: 'b', outcome: 'not_found' },
    ],
  },
  reason: null,
  gap: null,
}
const [big, low] = plan.steps as [Plan['steps'][number], Plan['steps'][number]]
const [last] = plan.unplaced as [Plan['unplaced'][number]]
const lacking = (lacks: { ramMib: number; cpuMc: number }) => ({
  ...plan.standing!,
  after: plan.standing!.after.map((loss) => (loss.name === 'a' ? { ...loss, lacks } : loss)),
})
const after = (name: string, outcome: 'restarted' | 'moved') => ({
  ...plan.standing!,
  after: plan.standing!.after.map((loss) => (loss.name === name ? { name, outcome } : loss)),
})

test('a plan whose claims match its steps has no false claim', () => {
  expect(verifyPlan(given, plan)).toEqual({ ok: true })
  expect(findFalseClaim(given, plan)).toBeNull()
})

test.each<[string, Partial<WrittenPlan>, string]>([
  ['a bound below zero', { lowerBound: -1 }, 'the bound is below zero'],
  ['a gap', { gap: 2 }, 'the gap is none, but the plan states 2'],
  ['a later wave', { steps: [big, { ...low, wave: 2 }] }, 'step 2 can begin in wave 1, but the plan states 2'],
  ['another priority', { steps: [{ ...big, priority: 9 }, low] }, 'big has priority 5, but the plan states 9'],
  ['another group', { steps: [{ ...big, haGroup: 'g' }, low] }, 'big is in no HA group, but the plan states g'],
  [
    'another priority of who stays down',
    { unplaced: [{ ...last, priority: 0 }] },
    'last has priority 9, but the plan states 0',
  ],
  ['somebody twice', { unplaced: [last, last] }, 'last is listed twice among the VMs that stay down'],
  [
    'overtaken by who runs',
    { unplaced: [{ ...last, overtakenBy: ['small'] }] },
    'small is not a VM with a place and a lower priority',
  ],
  [
    'a rack that stands',
    { standing: { ...plan.standing!, domain: 'rack' } },
    'the plan reports what still runs by rack',
  ],
  [
    'a host left out',
    { standing: { ...plan.standing!, after: [] } },
    'after the plan: the plan lists 0 that could fail, but there are 2',
  ],
  ['a death that is survived', { standing: after('a', 'restarted') }, 'if a fails, there is not enough RAM in total'],
  [
    'a lack that is none',
    { standing: lacking({ ramMib: 1, cpuMc: 0 }) },
    '6144 MiB and 6000 mCPU are missing, but the plan states 1 and 0',
  ],
  ['a death that moves others', { standing: after('a', 'moved') }, 'if a fails, there is not enough RAM in total'],
])('%s is no claim that holds', (_what, more, said) => {
  expect(findFalseClaim(given, { ...plan, ...more })).toContain(said)
})

test('a partial plan that leaves no VM down, and unknown keys, are refused', () => {
  const nobody = { ...plan, unplaced: [] }
  const all = { ...given, vms: given.vms.filter((each) => each.vm !== 'last') }
  expect(verifyPlan(all, nobody)).toEqual({ ok: false, step: 0, reason: 'a partial plan leaves no VM down' })
  const more = { ...plan, checked: true, steps: [{ ...big, force: true }, low], proof: { kind: 'trivial', k: 3 } }
  let flaws: unknown
  try {
    readPlanFile(more)
  } catch (error) {
    flaws = error instanceof InvalidProblemError && error.flaws.map(({ path }) => path).sort()
  }
  expect(flaws).toEqual(['checked', 'proof.k', 'steps.0.force'])
})

test(
  'no plan of the product makes a false claim',
  async () => {
    for (let seed = 1; seed <= 12; seed += 1) {
      const each = odd(seed)
      const made = await solve(each, { timeoutMs: patienceMs })
      expect([seed, findFalseClaim(each, readPlanFile(JSON.parse(JSON.stringify(made))))]).toEqual([seed, null])
    }
  },
  patienceMs,
)
