import { createRoute, type OpenAPIHono, z } from '@hono/zod-openapi'
import { every } from 'hono/combine'
import { agentActor, type IncidentEvent } from '../domain/event.ts'
import { type Permission, type Principal, perIncident } from '../domain/operator.ts'
import { maxBodyBytes } from './body-limit.ts'
import type { ApiDeps } from './deps.ts'
import type { Context, Env } from './hono.ts'
import { idempotencyKey, idempotent, keyShape } from './idempotent.ts'
import { jsonBody } from './json-body.ts'
import { type AgentAction, onlyJudged } from './judged.ts'
import { permit } from './permit.ts'
import { withinTypes } from './within-types.ts'

export type Router = OpenAPIHono<Env>

type Asked<P extends z.ZodType, Q extends z.ZodType, B extends z.ZodType> = {
  params: z.output<P>
  query: z.output<Q>
  body: z.output<B>
  principal: Principal
  /** Who acts, as rows say it. */
  actor: string
  /** The `Idempotency-Key`, or null. */
  key: string | null
  /** Of an agent's write: the row that announced it. Null for people. */
  judged: IncidentEvent<'tool_started'> | null
  c: Context
}

type Endpoint<P extends z.ZodType, Q extends z.ZodType, B extends z.ZodType, A extends z.ZodType> = {
  method: 'get' | 'post' | 'put'
  /** Below `/api/v1`. */
  path: string
  /** Which permission it takes; an endpoint without one cannot be declared. */
  permission: Permission
  tag: string
  summary: string
  description?: string
  params?: P
  query?: Q
  body?: B
  bodyExample?: z.input<B>
  headers?: z.ZodObject
  answer: A
  example: z.input<A>
  status?: 200 | 201 | 202
  /** Examples of other content types that it answers when they are asked for, by type. */
  downloads?: Record<string, string>
  /** Statuses of refusals beyond those that every endpoint has. */
  problems?: number[]
  /** Writes that agents may do; without it an agent's write is refused whatever its permissions say. */
  agent?: AgentAction
  /** The answer is kept nowhere: it holds a secret. */
  secret?: boolean
  run(asked: Asked<P, Q, B>): Promise<z.input<A> | Response>
}

const words: Record<number, string> = {
  400: 'The address is no percent-encoded UTF-8 or holds NUL, or the body is not JSON.',
  401: 'No token, or one that is unknown, expired or revoked.',
  403: 'The role may not; `UNJUDGED` for a write of an agent that no run announced.',
  404: 'There is no such thing.',
  405: 'Not a method of this path; `Allow` names those it has.',
  409: 'Its state does not allow it, or the same request is still at work.',
  410: 'Too late.',
  412: 'The state is not the one the caller saw.',
  413: `The body is larger than ${maxBodyBytes} bytes.`,
  415: 'Not a content type that is taken here.',
  422: 'The request does not fit its schema; `errors` names the fields.',
  424: 'A device said no, or gave no answer; `code` is its own word.',
  428: '`If-Match` is required.',
  429: 'Too many attempts; `Retry-After` says when to try again.',
  502: 'The platform said that it failed.',
  503: 'The database or the platform cannot be reached; `Retry-After` says when to try again.',
  504: 'What became of it is not known yet: ask `/effects/{key}`.',
}

const problemSchema = z
  .looseObject({
    type: z.string(),
    title: z.string(),
    status: z.number().int(),
    detail: z.string(),
    code: z.string(),
    requestId: z.string().nullable(),
  })
  .openapi('Problem')

function problemResponse(status: number) {
  const example = {
    type: 'about:blank',
    title: 'Not allowed',
    status,
    detail: words[status] ?? '',
    code: 'CODE',
    requestId: null,
  }
  return {
    description: words[status] ?? 'Refused.',
    content: { 'application/problem+json': { schema: problemSchema, example } },
  }
}

/** Declares one operation: who may, what it takes, what it answers. The rest is the same for all and stands here. */
export function endpoint<
  A extends z.ZodType,
  P extends z.ZodType = z.ZodUnknown,
  Q extends z.ZodType = z.ZodUnknown,
  B extends z.ZodType = z.ZodUnknown,
>(router: Router, deps: ApiDeps, spec: Endpoint<P, Q, B, A>): void {
  const writes = spec.method !== 'get'
  const status = spec.status ?? 200
  const refusals = [400, 401, 403, 422, 429, 503, ...(writes ? [413, 415] : []), ...(spec.problems ?? [])]
  const guards = [permit(spec.permission)]
  if (writes) guards.push(onlyJson)
  if (perIncident.includes(spec.permission)) guards.push(withinTypes(deps.db))
  if (writes) guards.push(onlyJudged(deps.db, spec.agent ?? null))
  if (spec.method === 'post' && !spec.secret) guards.push(idempotent(deps.db))
  const route = createRoute({
    method: spec.method,
    path: spec.path,
    tags: [spec.tag],
    summary: spec.summary,
    description: [spec.description, `Permission: \`${spec.permission}\`.`].filter(Boolean).join('\n\n'),
    security: [{ bearer: [] }],
    'x-permission': spec.permission,
    ...(spec.agent && {
      'x-agent-tool': typeof spec.agent.tool === 'string' ? spec.agent.tool : 'the device tool of its capability',
    }),
    middleware: every(...guards) as never,
    request: {
      ...(spec.params && { params: spec.params as never }),
      ...(spec.query && { query: spec.query as never }),
      ...((spec.headers || spec.method === 'post') && {
        headers: (spec.headers ?? z.object({})).extend({
          ...(spec.method === 'post' && { 'idempotency-key': z.string().regex(keyShape).optional() }),
        }) as never,
      }),
      ...(spec.body && {
        body: {
          // One that may be empty may also be missing.
          required: !spec.body.safeParse({}).success,
          content: { 'application/json': { schema: spec.body, example: spec.bodyExample } },
        },
      }),
    },
    responses: {
      [status]: {
        description: spec.summary,
        content: {
          'application/json': { schema: spec.answer, example: spec.example },
          ...textsOf(spec.downloads),
        },
      },
      ...Object.fromEntries([...new Set(refusals)].sort().map((each) => [each, problemResponse(each)])),
    },
  })
  const valid = (c: Context, part: string): unknown => c.req.valid(part as never)
  router.openapi(
    route as never,
    (async (c: Context) => {
      const principal = c.get('principal')
      const answer = await spec.run({
        params: (spec.params ? valid(c, 'param') : undefined) as z.output<P>,
        query: (spec.query ? valid(c, 'query') : undefined) as z.output<Q>,
        body: (spec.body ? spec.body.parse(valid(c, 'json')) : undefined) as z.output<B>,
        principal,
        actor: principal.role === 'agent' ? agentActor : `user:${principal.name}`,
        key: idempotencyKey(c.req.header('idempotency-key')),
        judged: c.get('judged'),
        c,
      })
      return answer instanceof Response ? answer : c.json(answer as object, status)
    }) as never,
  )
}

function textsOf(downloads: Record<string, string> = {}) {
  return Object.fromEntries(
    Object.entries(downloads).map(([type, example]) => [type, { schema: z.string(), example }] as const),
  )
}

/** A body is JSON and says so: no form of a foreign page can be one. */
async function onlyJson(c: Context, next: () => Promise<void>): Promise<undefined> {
  await jsonBody(c)
  await next()
}
