import type { TemporalSettings } from '../clients/temporal/settings.ts'
import { temporalSettingsIn } from '../config.ts'
import { isTemporalGiven } from '../start/environment.ts'
import type { Run } from '../start/run-file.ts'

/** Where Temporal listens if nobody says anything else. */
export const defaultTemporal = { address: '127.0.0.1:7233', namespace: 'default' }

/**
 * The Temporal of the start that runs here, else the one that the environment names; null where neither does. Throws ConfigError
 * where the environment contradicts itself.
 */
export function readTemporalSettings(run: Run | null): TemporalSettings | null {
  const given = isTemporalGiven(process.env) ? temporalSettingsIn() : null
  // An embedded server speaks no TLS; the user's own was started with these settings.
  if (run && given?.address !== run.temporalAddress) {
    return { address: run.temporalAddress, namespace: 'default', tls: false }
  }
  return given
}
