import { expect, test } from '@jest/globals'
import type { AskSource } from '../../../sources/kind.ts'
import { sourceKinds } from '../../../sources/kinds.ts'
import { groupNames } from '../../../sources/prometheus/name-groups.ts'

/** Names as exporters write them: families of some dozens, and single ones. */
const names = [
  ...Array.from({ length: 48 }, (_, n) => `node_memory_Part${n}_bytes`),
  ...Array.from({ length: 20 }, (_, n) => `node_disk_stat${n}_total`),
  ...Array.from({ length: 300 }, (_, n) => `pg_stat_statements_col${n}`),
  'node_load1',
  'up',
]

test('names are grouped by their beginning, and a single name is shown alone', () => {
  const groups = groupNames(names)
  expect(groups.length).toBeLessThanOrEqual(40)
  expect(groups.reduce((sum, { count }) => sum + count, 0)).toBe(names.length)
  expect(groups).toContainEqual({ prefix: 'up', count: 1, endings: [] })
  expect(groups).toContainEqual({ prefix: 'node_load1', count: 1, endings: [] })
  expect(groups).toContainEqual({ prefix: 'node_memory_', count: 48, endings: ['Part0_bytes', 'Part10_bytes'] })
  for (const { prefix, count } of groups)
    expect(names.filter((name) => name.startsWith(prefix)).length).toBeGreaterThanOrEqual(count)
})

test('few names and names without common words are no groups', () => {
  expect(groupNames(['up']).map(({ prefix }) => prefix)).toEqual(['up'])
  expect(groupNames(['a_x', 'b_x']).map(({ prefix }) => prefix)).toEqual(['a_x', 'b_x'])
  expect(groupNames([])).toEqual([])
})

test('a word that is a name and the beginning of others is shown beside them', () => {
  const told = groupNames(['go', 'go_gc', 'go_gc_pause', 'go_gc_duration'])
  expect(told.map(({ prefix }) => prefix).toSorted()).toEqual(['go', 'go_gc', 'go_gc_duration', 'go_gc_pause'])
})

test('metrics that do not fit into a summary are shown as groups, and a part of the name as names', async () => {
  const tool = sourceKinds.get('prometheus')?.tools.find(({ name }) => name === 'describe_metrics')
  const ask: AskSource = async ({ path, form }) => {
    if (!path.includes('query')) return { status: 'success', data: {} }
    const asked = /__name__=~"\.\*([a-zA-Z0-9]+)/.exec(new URLSearchParams(form).get('query') ?? '')?.[1] ?? ''
    const found = names.filter((name) => name.includes(asked))
    const result = found.map((name) => ({ metric: { __name__: name }, value: [1, '1'] }))
    return { status: 'success', data: { resultType: 'vector', result } }
  }
  const read = async (text?: string) =>
    (
      await tool?.read(ask, tool.input.parse({ labels: { instance: 'a' }, text }), {
        nowMs: 0,
        options: {},
        incidentBeganMs: null,
      })
    )?.summary
  const all = (await read()) as { groups: string[]; metrics: string[]; metricsFound: number; notShown: number }
  expect(Buffer.byteLength(JSON.stringify(all))).toBeLessThanOrEqual(2_000)
  expect(all.metricsFound).toBe(names.length)
  expect(all.groups.some((group) => group.startsWith('pg_stat_statements_'))).toBe(true)
  expect(all.metrics).toContain('up')
  expect(all.notShown).toBe(names.length - all.metrics.length)
  expect(await read('load')).toMatchObject({ metrics: ['node_load1'], metricsFound: 1 })
})
