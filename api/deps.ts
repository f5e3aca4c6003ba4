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

/** The base of the routes: what a write needs, and what HTTP, people and Temporal need besides. */
export type ApiDeps = Omit<EffectDeps, 'metrics'> & {
  runs: Runs
  metrics: Metrics
  /** Defaults of settings that the environment sets, by the name of the variable. */
  environment: EnvironmentDefaults
  /** What this process was given, without secrets. */
  variables: readonly EnvironmentVariable[]
  /**
   * This server's address for people, where it differs from the requests': behind a proxy that ends
   * TLS.
   */
  publicUrl: string | null
  /** What a person types before the words of a command, where this process runs. */
  commandPrefix: string
  /** Temporal's own pages, for links to a run. */
  /** Hosts that may deliver web pushes: `PUSH_SERVICES`. */
  pushServices: readonly string[]
  temporalPage: { url: string; namespace: string } | null
  /**
   * The environment's model, by its server's address; null: none is set here. `isEnabled`:
   * AGENT_ENABLED.
   */
  modelInUse: { server: string; model: string; isEnabled: boolean } | null
  /** The provider that signs people in; null: tokens alone. */
  oidc: Oidc | null
  /** The Slack workspace whose buttons decide; null: none is configured. */
  slack: SlackClient | null
  askSns: AskSns
  /** Runbooks, in this process. */
  knowledge: Knowledge
  /** How each source did, as this process saw it. */
  sources: SourceStates
  /** Aborted when the process has to stop: it is not ready any more, and streams end. */
  closing: AbortSignal
}

/** What the middlewares set for the routes behind them. */
export type Env = {
  Variables: {
    requestId: string
    principal: Principal
    /** The request carries a browser's session cookie, not a token. */
    browser: boolean
    /** The row that announced an agent's write; null for everything else. */
    judged: IncidentEvent<'tool_started'> | null
    /**
     * The key of a request that is done once, and the incident that an earlier request opened; null
     * without a key.
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
 * The address at the socket's other end. Ignores headers with another one: anybody can send them.
 */
export function getCallerAddress(c: Context): string {
  // A test that calls the app directly has no socket.
  if (!(c.env as { incoming?: unknown } | undefined)?.incoming) return 'unknown'
  return getConnInfo(c).remote.address ?? 'unknown'
}

/** Origins of this server: the request's, and `PUBLIC_URL` where a proxy ends TLS. */
export function getOwnOrigins(c: Context, publicUrl: string | null): string[] {
  const asked = new URL(c.req.url).origin
  return publicUrl ? [asked, new URL(publicUrl).origin] : [asked]
}

/** The person behind a request, as rows name them. Refuses machines. */
export function requirePerson(
  principal: Principal,
  actor: string,
): { operatorId: string; actor: string; name: string } {
  const { operatorId, name } = principal
  if (operatorId === null) throw new Problem(403, 'NOT_A_PERSON', 'Only a person can do this.')
  return { operatorId, actor, name }
}

/** The step key of a row after an announced call: its place, with another kind. Null for people. */
export function toRowKey(judged: IncidentEvent<'tool_started'> | null, kind: EventKind): string | null {
  return siblingKey(judged?.stepKey ?? null, kind)
}
