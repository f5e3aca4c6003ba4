import type { Logger } from 'pino'
import type { Oidc } from '../clients/oidc.ts'
import type { PlatformClient } from '../clients/platform.ts'
import type { SlackClient } from '../clients/slack/client.ts'
import type { Db } from '../db/connect.ts'
import type { EnvironmentDefaults } from '../db/settings.ts'
import type { PlacementLimits } from '../domain/placement.ts'
import type { EngineName } from '../placement/bound/engine.ts'
import type { Mesh } from './mesh/executor.ts'
import type { Metrics } from './metrics.ts'
import type { PlatformState } from './platform-state.ts'
import type { Runs } from './runs.ts'

/** What the routes are built over. */
export type ApiDeps = {
  db: Db
  /** Connections that hold a lock while an effect runs: apart, so that effects cannot starve the queries they need. */
  locks: Db
  platform: PlatformClient | null
  state: PlatformState
  /** The device mesh, with the keys it is spoken to by; null: none is configured. */
  mesh: Mesh | null
  /** How plans are made, and what of a host they may use. */
  placement: { engine: EngineName; limits: PlacementLimits }
  runs: Runs
  metrics: Metrics
  log: Logger
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
