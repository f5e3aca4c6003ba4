import type { TemporalSettings } from '../clients/temporal.ts'
import { temporalSettingsIn } from '../config/settings.ts'
import { isTemporalGiven } from '../start/environment.ts'
import type { LocalRun } from '../start/run-file.ts'

/** The address and namespace of Temporal if nothing else is configured. */
export const defaultTemporal = { address: '127.0.0.1:7233', namespace: 'default' }

/**
 * Returns the Temporal that `start` runs here, or else the Temporal in the environment. Null
 * without either. Throws ConfigError if settings in the environment contradict each other.
 */
export function readTemporalSettings(run: LocalRun | null): TemporalSettings | null {
  const given = isTemporalGiven(process.env) ? temporalSettingsIn() : null
  // Leaves out TLS for an embedded server. If `start` uses the Temporal of the environment, the
  // settings in the environment apply.
  if (run && given?.address !== run.temporalAddress) {
    return { address: run.temporalAddress, namespace: 'default', tls: false }
  }
  return given
}
