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

test('the model reads names, meanings and limits, and no noise', () => {
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

test('all tools of the product leave room for the prompt', () => {
  const all = describedTools(null, [], [], { shards: true, hosts: true })
  expect(all.length).toBeGreaterThanOrEqual(19)
  expect(JSON.stringify(describeTools(all)).length).toBeLessThan(9_500)
  expect(JSON.stringify(describeTools(all))).toBe(JSON.stringify(describeTools(all)))
})

test('a description that only repeats the names of tool and parameter is left out, and any other is kept', () => {
  const text = (description: string) => ({ type: 'string', description })
  const properties = { id: text('node id'), on: text('machine id'), port: text('who uses it') }
  const [described] = describeTools([
    { name: 'get_node', description: '', inputSchema: { type: 'object', properties } },
  ])
  expect(described?.function.parameters.properties).toEqual({ ...properties, id: { type: 'string' } })
})

test('the description of a shared parameter occurs once, and a tool that is added later refers to it', () => {
  const text = (description: string) => ({ type: 'string', description })
  const tool = (name: string, properties: object) => ({
    name,
    description: `Does. [device_mesh: ${name}]`,
    inputSchema: { type: 'object', properties },
  })
  const first = [
    tool('fs.read', { on: text('machine id'), path: text('absolute') }),
    tool('fs.list', { on: text('machine id'), path: text('absolute'), limit: text('entries') }),
  ]
  const later = [
    tool('fs.stat', { on: text('machine id'), limit: text('bytes') }),
    tool('fs.find', { limit: text('bytes') }),
  ]
  const said = (tools: ReturnType<typeof describeTools>) =>
    tools.map(({ function: each }) => each.parameters.properties)
  const plain = { type: 'string' }
  expect(said(describeTools(first))[1]).toEqual({ on: plain, path: plain, limit: text('entries') })
  // Each of them may be added without the other.
  expect(said(describeTools(later, first))).toEqual([{ on: plain, limit: text('bytes') }, { limit: text('bytes') }])
  expect(describeTools(first)[0]?.function.description).toBe('Does.')
})

test('the form of a list item does not say which fields are required, because code reports missing fields', () => {
  const form = z.toJSONSchema(z.strictObject({ claims: z.array(z.strictObject({ text: z.string() })) }))
  const [tool] = describeTools([{ name: 'end', description: '', inputSchema: form as Record<string, unknown> }])
  expect(tool?.function.parameters).toEqual({
    type: 'object',
    properties: { claims: { type: 'array', items: { type: 'object', properties: { text: { type: 'string' } } } } },
    required: ['claims'],
  })
})
