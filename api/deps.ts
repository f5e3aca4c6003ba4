import type { Oidc } from '../clients/oidc.ts'
import type { EnvironmentDefaults } from '../db/settings.ts'
import type { EffectDeps } from '../effects/effect.ts'
import type { Runs } from '../effects/runs.ts'
import type { SlackClient } from '../slack/client.ts'
import type { SourceStates } from '../sources/ask.ts'
import type { Metrics } from './http/metrics.ts'

/** What the routes are built over: what a write needs, and what HTTP, people and Temporal need besides. */
export type ApiDeps = Omit<EffectDeps, 'metrics'> & {
  runs: Runs
  metrics: Metrics
  /** Defaults of settings that the environment sets, by the name of the variable. */
  environment: EnvironmentDefaults
  /** The address of this server for people, where it differs from the requests' own: behind a proxy that ends TLS. */
  publicUrl: string | null
  /** Temporal's own pages, for links to a run. */
  temporalPage: { url: string; namespace: string } | null
  /** The provider that signs people in; null: tokens alone. */
  oidc: Oidc | null
  /** The Slack workspace whose buttons decide; null: none is configured. */
  slack: SlackClient | null
  /** How each source did, as this process saw it. */
  sources: SourceStates
  /** Aborted when the process has to stop: it is not ready any more, and streams end. */
  closing: AbortSignal
}
