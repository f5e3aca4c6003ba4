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

/** Mounts an operation on a router. */
type Operation = (router: Router, deps: ApiDeps) => void

type EndpointRequest<P extends z.ZodType, Q extends z.ZodType, B extends z.ZodType> = {
  params: z.output<P>
  query: z.output<Q>
  body: z.output<B>
  principal: Principal
  /** The rows that the caller may read. The scope is the first argument of queries. */
  scope: Scope
  /** The name of the caller as rows name actors. */
  actor: string
  /** The `Idempotency-Key` of the request, or null. */
  key: string | null
  /** The row that announced an agent's write. Null for a request of a person. */
  judged: IncidentEvent<'tool_started'> | null
  c: Context
}

type Endpoint<P extends z.ZodType, Q extends z.ZodType, B extends z.ZodType, A extends z.ZodType> = {
  method: 'get' | 'post' | 'put'
  /** The path of the operation below `/api/v1`. */
  path: string
  /** The required permission. An endpoint cannot be declared without one. */
  permission: Permission
  tag: string
  summary: string
  description?: string
  params?: P
  query?: Q
  body?: B
  bodyExample?: z.input<B>
  /** Checks a body before its schema does. Throws a Problem that a schema could not describe. */
  checkBody?(body: unknown, c: Context, deps: ApiDeps): Promise<void>
  headers?: z.ZodObject
  answer: A
  example: z.input<A>
  status?: 200 | 201 | 202
  /** An example for every content type of the response except JSON. */
  downloads?: Record<string, string>
  /** True if the response is always one of `downloads`, never JSON. */
  isFile?: boolean
  /** True if the response has an `ETag`. A caller that already has this version gets 304. */
  hasEtag?: boolean
  /** Statuses of refusals in addition to the statuses that all operations have. */
  problems?: number[]
  /**
   * The action of an agent that this write carries out. Without an action, an agent may not send
   * the write, whatever its permissions.
   */
  agent?: AgentAction
  /** True if the response contains a secret, and is therefore not stored. */
  secret?: boolean
  run(request: EndpointRequest<P, Q, B>, deps: ApiDeps): Promise<z.input<A> | Response>
}

/** The part of a declaration that does not depend on its type parameters. */
type AnyEndpoint = Omit<Endpoint<z.ZodType, z.ZodType, z.ZodType, z.ZodType>, 'run'>

const words: Record<number, string> = {
  400: 'The address is not percent-encoded UTF-8 or contains NUL, or the request body is not JSON.',
  401: 'The token is missing, unknown, expired or revoked.',
  403: 'The role lacks the permission. `UNJUDGED`: an agent sent a write that no run announced.',
  404: 'Not found.',
  405: 'The path does not support this method; `Allow` lists the supported methods.',
  409: 'The current state does not allow this request, or the same request is still being processed.',
  410: 'Expired.',
  412: 'The state has changed since the caller read the state.',
  413: `The request body is larger than ${maxBodyBytes} bytes.`,
  415: 'This content type is not accepted here.',
  422: 'The request does not match the schema; `errors` lists the wrong fields.',
  424: 'A device refused the call or did not answer; `code` is the error code of the device.',
  428: '`If-Match` is required.',
  429: 'Too many attempts; `Retry-After` gives the time to wait.',
  502: 'The platform reported a failure.',
  503: 'The database or the platform cannot be reached; `Retry-After` gives the time to wait.',
  504: 'The result is not known yet. Query `/effects/{key}` later.',
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
 * Declares one operation: permission, input and output. Guards, problems and the OpenAPI document
 * are derived from it.
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

/** Lists the checks of every operation, in order. */
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
        // Lets the body be absent if an empty body is valid.
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
    ...(spec.hasEtag && { 304: { description: 'Not modified: `If-None-Match` names the current `ETag`.' } }),
    ...Object.fromEntries([...new Set(refusals)].sort().map((each) => [each, problemResponse(each)])),
  }
}

function buildDownloads(downloads: Record<string, string> = {}) {
  return Object.fromEntries(
    Object.entries(downloads).map(([type, example]) => [type, { schema: z.string(), example }] as const),
  )
}

/** Requires a JSON content type, which a form on a foreign page cannot send. */
async function onlyJson(c: Context, next: () => Promise<void>): Promise<undefined> {
  await jsonBody(c)
  await next()
}

/** Builds the OpenAPI document of all operations, as the API serves it. */
export function openApiDocument(app: OpenAPIHono<Env>): object {
  const document = app.getOpenAPI31Document({ openapi: '3.1.0', info: { title: 'Nightshift', version } })
  return boundIntegers(document) as object
}

/** Adds the limits of safe integers, which schemas enforce. */
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
