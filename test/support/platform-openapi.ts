import { z } from 'zod'
import {
  convergeBody,
  convergeDryRun,
  effectAnswer,
  hostState,
  inventory,
  linkState,
  migrateBody,
  nodeState,
  regionState,
  restartBody,
  shardState,
  startBody,
  stopBody,
  tenantState,
  vmState,
} from '../../domain/platform.ts'

/**
 * The platform protocol as OpenAPI, for those who connect their own platform:
 * `docs/reference/platform.openapi.json`.
 */

const named = {
  Inventory: inventory,
  Region: regionState,
  Shard: shardState,
  Node: nodeState,
  Tenant: tenantState,
  Host: hostState,
  Vm: vmState,
  Link: linkState,
  ConvergeDryRun: convergeDryRun,
  ConvergeBody: convergeBody,
  StartBody: startBody,
  MigrateBody: migrateBody,
  StopBody: stopBody,
  RestartBody: restartBody,
  EffectAnswer: effectAnswer,
}
type SchemaName = keyof typeof named

const ref = (name: SchemaName) => ({ $ref: `#/components/schemas/${name}` })
const json = (name: SchemaName) => ({ content: { 'application/json': { schema: ref(name) } } })
const answers = (name: SchemaName, description: string) => ({ '200': { description, ...json(name) } })
const says = (description: string) => ({
  description,
  content: { 'application/json': { schema: { type: 'object', properties: { detail: { type: 'string' } } } } },
})
const unauthorized = { '401': says('No bearer token, or another one.') }
const idIn = (what: string) => ({
  name: 'id',
  in: 'path',
  required: true,
  description: what,
  schema: { type: 'string' },
})

const key = {
  name: 'Idempotency-Key',
  in: 'header',
  required: true,
  description:
    'Written down with the body before the write begins. A repeat is answered from there: the write happens once, however often it is sent.',
  schema: { type: 'string', maxLength: 400 },
}

function write(summary: string, body: SchemaName, what: string) {
  return {
    summary,
    parameters: [idIn(what), key],
    requestBody: { required: true, ...json(body) },
    responses: {
      ...answers('EffectAnswer', 'Accepted: `running` while it goes on, then how it ended.'),
      ...unauthorized,
      '404': says('There is no such thing: nothing was begun.'),
      '422': says('The key was used with another body, or the body is not one of this protocol: nothing was begun.'),
    },
  }
}

/** A platform may leave it out. */
function optional<W extends ReturnType<typeof write>>(operation: W) {
  const responses = { ...operation.responses, '501': says('The platform cannot do this: nothing was begun.') }
  return { ...operation, responses }
}

const paths = {
  '/v1/inventory': {
    get: {
      summary: 'All there is, with its state now',
      description:
        'Asked every few seconds, and before every decision. An answer that takes longer than 3 s counts as unreachable.',
      responses: { ...answers('Inventory', 'The inventory.'), ...unauthorized },
    },
  },
  '/v1/shards/{id}/converge': {
    get: {
      summary: 'What a convergence would change',
      description:
        'Changes nothing. A platform that cannot tell answers 404, 405 or 501: people then approve without a dry run.',
      parameters: [
        idIn('A shard.'),
        { name: 'dry_run', in: 'query', required: true, schema: { type: 'string', enum: ['true'] } },
      ],
      responses: {
        ...answers('ConvergeDryRun', 'Every node of the shard, with what would change on it.'),
        ...unauthorized,
        '404': says('There is no such shard, or no dry run.'),
        '501': says('The platform cannot tell.'),
      },
    },
    post: write('Re-applies desired state to every node of a shard', 'ConvergeBody', 'A shard.'),
  },
  '/v1/vms/{id}/start': { post: write('Starts a VM on a host', 'StartBody', 'A VM.') },
  '/v1/vms/{id}/migrate': { post: write('Moves a running VM to another host', 'MigrateBody', 'A VM.') },
  '/v1/vms/{id}/stop': { post: optional(write('Stops a VM and leaves it stopped', 'StopBody', 'A running VM.')) },
  '/v1/vms/{id}/restart': {
    post: optional(write('Stops a VM and starts it again on the same host', 'RestartBody', 'A running VM.')),
  },
  '/v1/effects/{key}': {
    get: {
      summary: 'The result of a write',
      parameters: [{ name: 'key', in: 'path', required: true, schema: { type: 'string' } }],
      responses: {
        ...answers('EffectAnswer', 'How far it has come.'),
        ...unauthorized,
        '404': says(
          'The key was never accepted: nothing happened. Nightshift then sends the write under the same key.',
        ),
      },
    },
  },
}

export function platformOpenApi(): Record<string, unknown> {
  const registry = z.registry<{ id: string }>()
  for (const [id, schema] of Object.entries(named)) registry.add(schema, { id })
  // What a platform sends: fields with a default may be left out.
  const { schemas } = z.toJSONSchema(registry, { io: 'input', uri: (id) => `#/components/schemas/${id}` })
  return {
    openapi: '3.1.0',
    info: {
      title: 'Nightshift platform protocol',
      version: '1.0.0',
      description:
        'What Nightshift asks of whatever runs the hosts (`PLATFORM_URL`, `PLATFORM_TOKEN`): an inventory with live state, and five writes that each happen once per key. `examples/platform-adapter/` speaks it in a hundred lines.',
    },
    security: [{ bearer: [] }],
    paths,
    components: {
      securitySchemes: { bearer: { type: 'http', scheme: 'bearer' } },
      schemas: Object.fromEntries(Object.entries(schemas).map(([id, schema]) => [id, withoutIds(schema)])),
    },
  }
}

/** In OpenAPI a schema is known by its place in the document. */
function withoutIds({ $id: _, $schema: __, id: ___, ...schema }: Record<string, unknown>): Record<string, unknown> {
  return schema
}
