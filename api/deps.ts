import { getConnInfo } from '@hono/node-server/conninfo'
import type { Context as HonoContext, MiddlewareHandler } from 'hono'
import type { ZodError } from 'zod'
import type { Oidc } from '../clients/oidc.ts'
import type { AskSns } from '../clients/sns.ts'
import type { IdempotencyKey } from '../db/idempotency-keys.ts'
import type { EnvironmentDefaults } from '../db/settings.ts'
import type { EventKind, IncidentEvent } from '../domain/event.ts'
import type { Principal } from '../domain/permissions.ts'
import type { EnvironmentVariable } from '../domain/setting-row.ts'
import { siblingKey } from '../domain/step-key.ts'
import type { EffectDeps } from '../effects/effect.ts'
import type { Runs } from '../effects/runs.ts'
import type { Knowledge } from '../knowledge/knowledge.ts'
import type { SlackClient } from '../notify/slack/client.ts'
import type { SourceStates } from '../sources/ask.ts'
import type { Metrics } from './http/metrics.ts'
import { Problem } from './http/problem.ts'

/** Dependencies of the routes: those of a write, and more for HTTP, people and Temporal. */
export type ApiDeps = Omit<EffectDeps, 'metrics'> & {
  runs: Runs
  metrics: Metrics
  /** Values of settings in the environment, by the name of the variable. */
  environment: EnvironmentDefaults
  /** The environment variables of this process, without secrets. */
  variables: readonly EnvironmentVariable[]
  /**
   * The address of this server for people, if a proxy makes it differ from the address in requests.
   */
  publicUrl: string | null
  /** What people type before a command on the machine of this process. */
  commandPrefix: string
  /** The address of Temporal's pages, for links to a run. */
  /** Hosts to which web pushes may be sent (`PUSH_SERVICES`). */
  pushServices: readonly string[]
  temporalPage: { url: string; namespace: string } | null
  /**
   * The model from the environment, with its server's address. Null if no model is set. `isEnabled`
   * is AGENT_ENABLED.
   */
  modelInUse: { server: string; model: string; isEnabled: boolean } | null
  /** The identity provider. Null if people sign in only with tokens. */
  oidc: Oidc | null
  /** The Slack workspace whose buttons decide approvals. Null if none is configured. */
  slack: SlackClient | null
  askSns: AskSns
  /** The runbooks of this process. */
  knowledge: Knowledge
  /** The state of each source as this process observed it. */
  sources: SourceStates
  /** Aborted when the process has to stop. `/readyz` then fails, and streams end. */
  closing: AbortSignal
}

/** Values that middleware sets for the routes. */
export type Env = {
  Variables: {
    requestId: string
    principal: Principal
    /** True if the request has a browser's session cookie instead of a token. */
    browser: boolean
    /** The row that announced an agent's write. Null for every other request. */
    judged: IncidentEvent<'tool_started'> | null
    /**
     * The idempotency key of a request that runs only once, and the incident that an earlier
     * request with this key opened. Null without a key.
     */
    once: { place: IdempotencyKey; opened: string | null } | null
  }
}
export type Context = HonoContext<Env>
export type Middleware = MiddlewareHandler<Env>
export type Hook = (
  result: { target: string } & ({ success: true; data: unknown } | { success: false; error: ZodError }),
  c: Context,
) => Response | undefined

/**
 * Returns the address at the other end of the socket. Ignores headers, because anybody can send
 * them.
 */
export function getCallerAddress(c: Context): string {
  // Returns `unknown` without a socket, as in a test that calls the app directly.
  if (!(c.env as { incoming?: unknown } | undefined)?.incoming) return 'unknown'
  return getConnInfo(c).remote.address ?? 'unknown'
}

/**
 * Lists the origins of this server: the origin of the request, and `PUBLIC_URL` if a proxy ends
 * TLS.
 */
export function getOwnOrigins(c: Context, publicUrl: string | null): string[] {
  const asked = new URL(c.req.url).origin
  return publicUrl ? [asked, new URL(publicUrl).origin] : [asked]
}

/** Returns the person who sent a request, with the name that rows use. Refuses machines. */
export function requirePerson(
  principal: Principal,
  actor: string,
): { operatorId: string; actor: string; name: string } {
  const { operatorId, name } = principal
  if (operatorId === null) throw new Problem(403, 'NOT_A_PERSON', 'Only a person can do this.')
  return { operatorId, actor, name }
}

/** Returns the step key of a further row of an announced call. Null for requests of people. */
export function toRowKey(judged: IncidentEvent<'tool_started'> | null, kind: EventKind): string | null {
  return siblingKey(judged?.stepKey ?? null, kind)
}
