import { expect, test } from '@jest/globals'
import { readToolName, similarNames } from '../../domain/tool-name.ts'

const names = ['get_node', 'get_shard', 'fs_read', 'proc_list', 'exec', 'query_metrics', 'pkg_search']
const has = (name: string) => names.includes(name)

test.each([
  'get_node',
  'get_node\n',
  ' get_node ',
  '"get_node"',
  'functions.get_node',
  'functions.get_node:0',
  'tools.get_node',
  'get_node()',
  'get_node<|channel|>commentary',
  'get_node<|constrain|>json',
  'get.node',
  'get-node',
  'Get_Node',
])('%j is get_node', (spelled) => expect(readToolName(spelled, has)).toBe('get_node'))

test.each([
  '',
  'node',
  'get',
  'get_nodes',
  'get_node_and_exec',
  'exec; get_node',
  'get_nodeget_shard',
  'functions.',
  'ехес',
])('%j is no tool, and none is guessed', (spelled) => expect(readToolName(spelled, has)).toBeNull())

test('a spelling that may mean two tools means none', () => {
  expect(readToolName('Fs.Read', (name) => ['fs_read', 'Fs_Read'].includes(name))).toBeNull()
})

test('names similar to an unknown one are suggested, and no others', () => {
  expect(similarNames('get_nodes', names)).toContain('get_node')
  expect(similarNames('metrics_query', names)).toEqual(['query_metrics'])
  expect(similarNames('package_search', names)).toEqual(['pkg_search'])
  expect(similarNames('kubectl', names)).toEqual([])
})
