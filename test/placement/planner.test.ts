import { expect, test } from '@jest/globals'
import { generate } from '../../bench/placement/clusters.ts'
import { solve } from '../../placement/solve.ts'
import { verifyPlan } from '../../placement/verify.ts'
import { eventually, patienceMs } from '../support/directory.ts'
import { dead, down, host, problem, vm } from './problems.ts'
import { listSolvers } from './solvers.ts'

const easy = problem([host('a', 16), host('x', 16, dead)], [vm('v', 4, 'x', down)])
const hard = generate({ hosts: 20, vms: 300, racks: null, load: 0.97, seed: 1 })

test('an easy question asks no solver, and an abandoned question leaves no solver behind', async () => {
  const warm = listSolvers()
  await solve(easy)
  expect(listSolvers()).toEqual(warm)
  const wanted = new AbortController()
  const given = solve(hard, { timeoutMs: patienceMs, signal: wanted.signal })
  await Promise.race([given, eventually('a solver', () => listSolvers().length > 0)])
  wanted.abort()
  expect((await given).isTimeUp).toBe(true)
  await eventually('the end of the solver', () => listSolvers().length === 0)
})

test('parallel questions are all answered, and so is the next one', async () => {
  const plans = await Promise.all([easy, hard, easy].map((each) => solve(each, { timeoutMs: patienceMs })))
  expect(plans.map(({ state }) => state)).toEqual(['planned', 'planned', 'planned'])
  expect((await solve(easy)).state).toBe('planned')
})

test('a solver that dies costs only the question that it was asked', async () => {
  const given = solve(hard, { timeoutMs: patienceMs })
  await Promise.race([given, eventually('a solver', () => listSolvers().length > 0)])
  const [pid] = listSolvers()
  process.kill(pid as number, 'SIGKILL')
  const plan = await given
  expect(plan.state).toBe('planned')
  expect(verifyPlan(hard, plan)).toEqual({ ok: true })
  expect(await solve(hard, { timeoutMs: patienceMs })).toMatchObject({ state: 'planned', isTimeUp: false })
})
