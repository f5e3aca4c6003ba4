import { afterAll, expect, test } from '@jest/globals'
import { startEngine } from '../../placement/bound/assignment.ts'
import { buildInstance, buildModel } from '../../placement/cluster/instance.ts'
import { random } from '../../placement/cluster/size-classes.ts'
import { listUnplaced } from '../../placement/plan.ts'
import { exchange } from '../../placement/search/exchange.ts'
import { initialState } from '../../placement/search/exhaust.ts'
import { patienceMs } from '../support/directory.ts'
import { dead, down, host, problem, vm } from './problems.ts'

const engine = startEngine('highs')
afterAll(() => engine.stop())

test('a VM that is known to have no place does not prevent an exchange for another VM', async () => {
  const given = problem(
    [host('a', 8), host('b', 4), host('x', 64, dead)],
    [vm('small', 2, 'a'), vm('big', 8, 'x', down), vm('never', 64, 'x', down)],
  )
  const { instance, names } = buildInstance(given, buildModel(given))
  const state = initialState(instance, {
    isInfeasible: true,
    engine,
    mip: engine,
    deadlineMs: performance.now() + patienceMs,
    random: random(1),
    report: () => {},
  })
  await exchange(state, 3)
  const unplaced = listUnplaced(names, state.incumbent.unplaced, instance)
  expect(unplaced.map(({ vm }) => vm)).toEqual(['never'])
})
