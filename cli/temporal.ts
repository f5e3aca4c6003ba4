import type { TemporalSettings } from '../clients/temporal.ts'
import { temporalSettingsIn } from '../config/settings.ts'
import { isTemporalGiven } from '../start/environment.ts'
import type { LocalRun } from '../start/run-file.ts'

/** The address and namespace of Temporal if nothing else is configured. */
export const defaultTemporal = { address: '127.0.0.1:7233', namespace: 'default' }

/**
 * Returns the Temporal that `start` runs here, or else the one in the environment, or else null.
 * Throws ConfigError if the environment contradicts itself.
 */
export function readTemporalSettings(run: LocalRun | null): TemporalSettings | null {
  const given = isTemporalGiven(process.env) ? temporalSettingsIn() : null
  // An embedded server does not use TLS. The user's Temporal was used by `start` with these
  // settings.
  if (run && given?.address !== run.temporalAddress) {
    return { address: run.temporalAddress, namespace: 'default', tls: false }
  }
  return given
}
