import { afterAll, expect, test } from '@jest/globals'
import { startEngine } from '../../placement/bound/assignment.ts'
import type { Assignment } from '../../placement/bound/places-model.ts'
import { buildInstance, buildModel } from '../../placement/cluster/instance.ts'
import { random } from '../../placement/cluster/size-classes.ts'
import { bringHome } from '../../placement/search/who-starts.ts'
import { patienceMs } from '../support/directory.ts'
import { dead, down, host, problem, vm } from './problems.ts'

const engine = startEngine('highs')
afterAll(() => engine.stop())

test('final places that no order reaches are replaced by others with as few moves', async () => {
  // One of the three has to make room for the large one, and may go to either of two hosts.
  const given = problem(
    [host('a', 8), host('b', 8), host('c', 8), host('x', 8, dead)],
    [vm('one', 4, 'a'), vm('two', 4, 'b'), vm('three', 4, 'c'), vm('large', 8, 'x', down)],
  )
  const { instance, names } = buildInstance(given, buildModel(given))
  const at = (name: string) => names.hosts.indexOf(name)
  const [one, two, three, large] = instance.home.keys() as unknown as [number, number, number, number]
  const moved: Assignment = new Map([
    [one, at('b')],
    [two, at('c')],
    [three, at('c')],
    [large, at('a')],
  ])
  const offered: string[] = []
  await bringHome({ instance, mip: engine, limitMs: patienceMs }, moved, random(1), (places) => {
    const away = [...places].filter(([each, to]) => instance.movable[each] && instance.home[each] !== to)
    if (away.length === 1) offered.push(JSON.stringify(away))
    return false
  })
  expect(new Set(offered).size).toBeGreaterThan(1)
})
