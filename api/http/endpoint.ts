import { createRoute, type OpenAPIHono, z } from '@hono/zod-openapi'
import { every } from 'hono/combine'
import { type Scope, scopeOf } from '../../db/scope.ts'
import { agentActor, type IncidentEvent } from '../../domain/event.ts'
import { type Permission, type Principal, perIncident } from '../../domain/permissions.ts'
import { version } from '../../domain/version.ts'
import type { ApiDeps, Context, Env, Middleware } from '../deps.ts'
import { jsonBody } from './body.ts'
import { type AgentAction, onlyJudged, permit, withinTypes } from './guards.ts'
import { idempotencyKey, idempotent, keyShape } from './idempotency.ts'
import { maxBodyBytes } from './middleware.ts'

export type Router = OpenAPIHono<Env>

/** What mounts an operation on a router. */
type Operation = (router: Router, deps: ApiDeps) => void

type EndpointRequest<P extends z.ZodType, Q extends z.ZodType, B extends z.ZodType> = {
  params: z.output<P>
  query: z.output<Q>
  body: z.output<B>
  principal: Principal
  /** What the caller may read: queries take it first. */
  scope: Scope
  /** The actor, as rows name them. */
  actor: string
  /** The `Idempotency-Key`, or null. */
  key: string | null
  /** For an agent's write: the row that announced it. Null for people. */
  judged: IncidentEvent<'tool_started'> | null
  c: Context
}

type Endpoint<P extends z.ZodType, Q extends z.ZodType, B extends z.ZodType, A extends z.ZodType> = {
  method: 'get' | 'post' | 'put'
  /** Below `/api/v1`. */
  path: string
  /** The permission that it needs; an endpoint without one cannot be declared. */
  permission: Permission
  tag: string
  summary: string
  description?: string
  params?: P
  query?: Q
  body?: B
  bodyExample?: z.input<B>
  /**
   * Looks at a body before its schema, and throws a Problem, where a fault may be more than a
   * schema can tell.
   */
  checkBody?(body: unknown, c: Context, deps: ApiDeps): Promise<void>
  headers?: z.ZodObject
  answer: A
  example: z.input<A>
  status?: 200 | 201 | 202
  /** An example for every other content type that it can answer. */
  downloads?: Record<string, string>
  /** Its answer is one of `downloads`, and never JSON. */
  isFile?: boolean
  /** It has an `ETag`, and answers 304 to a caller that has it already. */
  hasEtag?: boolean
  /** Statuses of refusals beyond those that every endpoint has. */
  problems?: number[]
  /** Writes open to agents; any other agent's write is refused whatever its permissions. */
  agent?: AgentAction
  /** The answer holds a secret and is stored nowhere. */
  secret?: boolean
  run(request: EndpointRequest<P, Q, B>, deps: ApiDeps): Promise<z.input<A> | Response>
}

/** What of a declaration does not depend on its types. */
type AnyEndpoint = Omit<Endpoint<z.ZodType, z.ZodType, z.ZodType, z.ZodType>, 'run'>

const words: Record<number, string> = {
  400: 'The address is not percent-encoded UTF-8 or holds NUL, or the body is not JSON.',
  401: 'No token, or one that is unknown, expired or revoked.',
  403: 'The role may not; `UNJUDGED` for a write of an agent that no run announced.',
  404: 'There is no such thing.',
  405: 'Not a method of this path; `Allow` names those it has.',
  409: 'Its state does not allow it, or the same request is still under way.',
  410: 'Too late.',
  412: 'The state is not the one the caller saw.',
  413: `The body is larger than ${maxBodyBytes} bytes.`,
  415: 'This content type is not accepted here.',
  422: 'The request does not fit its schema; `errors` names the fields.',
  424: 'A device refused or did not answer; `code` is its own word.',
  428: '`If-Match` is required.',
  429: 'Too many attempts; `Retry-After` says when to try again.',
  502: 'The platform reported a failure.',
  503: 'The database or the platform cannot be reached; `Retry-After` says when to try again.',
  504: 'The result is not known yet: ask `/effects/{key}`.',
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

/**
 * Declares one operation: who may call it, what it takes, what it answers. Guards, problems and the
 * OpenAPI document follow from it.
 */
export function endpoint<
  A extends z.ZodType,
  P extends z.ZodType = z.ZodUnknown,
  Q extends z.ZodType = z.ZodUnknown,
  B extends z.ZodType = z.ZodUnknown,
>(spec: Endpoint<P, Q, B, A>): Operation {
  return (router, deps) => {
    const route = createRoute({
      method: spec.method,
      path: spec.path,
      tags: [spec.tag],
      summary: spec.summary,
      description: [spec.description, `Permission: \`${spec.permission}\`.`].filter(Boolean).join('\n\n'),
      security: [{ bearer: [] }],
      'x-permission': spec.permission,
      ...(spec.agent && {
        'x-agent-tool': typeof spec.agent.tool === 'string' ? spec.agent.tool : (spec.agent.tools ?? 'one of several'),
      }),
      middleware: every(...buildGuards(deps, spec)) as never,
      request: buildRequest(spec),
      responses: buildResponses(spec),
    })
    const valid = (c: Context, part: string): unknown => c.req.valid(part as never)
    router.openapi(
      route as never,
      (async (c: Context) => {
        const principal = c.get('principal')
        const header = c.req.header('idempotency-key')
        const answer = await spec.run(
          {
            params: (spec.params ? valid(c, 'param') : undefined) as z.output<P>,
            query: (spec.query ? valid(c, 'query') : undefined) as z.output<Q>,
            body: (spec.body ? spec.body.parse(valid(c, 'json')) : undefined) as z.output<B>,
            principal,
            scope: scopeOf(deps.db, principal),
            actor: principal.role === 'agent' ? agentActor : `user:${principal.name}`,
            key: header === undefined ? null : idempotencyKey(header),
            judged: c.get('judged'),
            c,
          },
          deps,
        )
        return answer instanceof Response ? answer : c.json(answer as object, spec.status ?? 200)
      }) as never,
    )
  }
}

/** What every operation is checked by, in this order. */
function buildGuards(deps: ApiDeps, { method, permission, agent, secret, checkBody }: AnyEndpoint): Middleware[] {
  const { db } = deps
  const writes = method !== 'get'
  const guards = [permit(permission)]
  if (writes) guards.push(onlyJson)
  if (perIncident.includes(permission)) guards.push(withinTypes(db))
  if (writes) guards.push(onlyJudged(db, agent ?? null))
  if (method === 'post' && !secret) guards.push(idempotent(db))
  if (checkBody)
    guards.push(async (c, next) => {
      await checkBody(await jsonBody(c), c, deps)
      await next()
    })
  return guards
}

function buildRequest(spec: AnyEndpoint) {
  return {
    ...(spec.params && { params: spec.params as never }),
    ...(spec.query && { query: spec.query as never }),
    ...((spec.headers || spec.method === 'post') && {
      headers: (spec.headers ?? z.object({})).extend({
        ...(spec.method === 'post' && { 'idempotency-key': z.string().regex(keyShape).optional() }),
      }) as never,
    }),
    ...(spec.body && {
      body: {
        // A body that may be empty may also be missing.
        required: !spec.body.safeParse({}).success,
        content: { 'application/json': { schema: spec.body, example: spec.bodyExample } },
      },
    }),
  }
}

function buildResponses(spec: AnyEndpoint) {
  const writes = spec.method !== 'get'
  const refusals = [400, 401, 403, 422, 429, 503, ...(writes ? [413, 415] : []), ...(spec.problems ?? [])]
  return {
    [spec.status ?? 200]: {
      description: spec.summary,
      content: {
        ...(!spec.isFile && { 'application/json': { schema: spec.answer, example: spec.example } }),
        ...buildDownloads(spec.downloads),
      },
    },
    ...(spec.hasEtag && { 304: { description: 'The caller has it already: `If-None-Match` names its `ETag`.' } }),
    ...Object.fromEntries([...new Set(refusals)].sort().map((each) => [each, problemResponse(each)])),
  }
}

function buildDownloads(downloads: Record<string, string> = {}) {
  return Object.fromEntries(
    Object.entries(downloads).map(([type, example]) => [type, { schema: z.string(), example }] as const),
  )
}

/** A body is JSON and says so: no form of a foreign page can be one. */
async function onlyJson(c: Context, next: () => Promise<void>): Promise<undefined> {
  await jsonBody(c)
  await next()
}

/** The document of every operation, as it is served. */
export function openApiDocument(app: OpenAPIHono<Env>): object {
  const document = app.getOpenAPI31Document({ openapi: '3.1.0', info: { title: 'Nightshift', version } })
  return boundIntegers(document) as object
}

/** Integers that every JSON reader has: the document says what schemas refuse beyond them. */
function boundIntegers(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(boundIntegers)
  if (value === null || typeof value !== 'object') return value
  const entries = Object.entries(value).map(([key, entry]) => [key, boundIntegers(entry)] as const)
  const schema: Record<string, unknown> = Object.fromEntries(entries)
  if (schema.type === 'integer') {
    if (schema.exclusiveMaximum === undefined) schema.maximum ??= Number.MAX_SAFE_INTEGER
    if (schema.exclusiveMinimum === undefined) schema.minimum ??= Number.MIN_SAFE_INTEGER
  }
  return schema
}
