import type { Oidc } from '../clients/oidc.ts'
import type { SlackClient } from '../clients/slack/client.ts'
import type { EnvironmentDefaults } from '../db/settings.ts'
import type { EffectDeps } from '../effects/effect.ts'
import type { Runs } from '../effects/runs.ts'
import type { Metrics } from './http/metrics.ts'

/** What the routes are built over: what a write needs, and what HTTP, people and Temporal need besides. */
export type ApiDeps = Omit<EffectDeps, 'metrics'> & {
  runs: Runs
  metrics: Metrics
  /** Defaults of settings that somebody set in the environment, by the name of the variable. */
  environment: EnvironmentDefaults
  /** Where people reach this server, when that is not how requests name it: behind a proxy that ends TLS. */
  publicUrl: string | null
  /** Temporal's own pages, for links to a run. */
  temporalPage: { url: string; namespace: string } | null
  /** Who vouches for people; null: tokens alone. */
  oidc: Oidc | null
  /** The workspace whose buttons decide; null: none do. */
  slack: SlackClient | null
  /** Aborted when the process is told to stop: not ready any more, streams end. */
  closing: AbortSignal
}
