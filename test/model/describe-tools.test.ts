import { expect, test } from '@jest/globals'
import { z } from 'zod'
import { describeTools, describeToolsAsText } from '../../model/describe-tools.ts'
import { describedTools } from '../../tools/registry.ts'

const schema = z.toJSONSchema(
  z.strictObject({
    id: z.string().describe('Which shard'),
    title: z.string().optional(),
    limit: z.int().min(1).max(200).default(20),
    kind: z.enum(['a', 'b']),
  }),
  { io: 'input' },
) as Record<string, unknown>

test('the model is told names, meanings and bounds, and no noise', () => {
  const [tool] = describeTools([{ name: 'get_shard', description: 'Get a shard.', inputSchema: schema }])
  expect(tool).toEqual({
    type: 'function',
    function: {
      name: 'get_shard',
      description: 'Get a shard.',
      parameters: {
        type: 'object',
        properties: {
          id: { type: 'string', description: 'Which shard' },
          title: { type: 'string' }, // a parameter of that name is no noise
          limit: { type: 'integer', maximum: 200, default: 20 }, // that one is the least goes without saying
          kind: { type: 'string', enum: ['a', 'b'] },
        },
        required: ['id', 'kind'],
      },
    },
  })
})

test('as text, a tool is one line of JSON', () => {
  const text = describeToolsAsText([{ name: 'a', description: 'Line\nbreak', inputSchema: { type: 'object' } }])
  expect(text.split('\n')).toHaveLength(1)
  expect(JSON.parse(text)).toEqual({ name: 'a', description: 'Line\nbreak', parameters: { type: 'object' } })
})

test('all our tools leave room for the prompt', () => {
  const all = describedTools(null, [], [], { shards: true, hosts: true })
  expect(all.length).toBeGreaterThanOrEqual(19)
  expect(JSON.stringify(describeTools(all)).length).toBeLessThan(9_500)
  expect(JSON.stringify(describeTools(all))).toBe(JSON.stringify(describeTools(all)))
})

test('a parameter whose description only repeats the names of tool and parameter goes without, and any other keeps it', () => {
  const text = (description: string) => ({ type: 'string', description })
  const properties = { id: text('node id'), on: text('machine id'), port: text('who uses it') }
  const [described] = describeTools([
    { name: 'get_node', description: '', inputSchema: { type: 'object', properties } },
  ])
  expect(described?.function.parameters.properties).toEqual({ ...properties, id: { type: 'string' } })
})
