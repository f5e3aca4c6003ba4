import type { TemporalSettings } from '../clients/temporal.ts'
import { temporalSettingsIn } from '../config/settings.ts'
import { isTemporalGiven } from '../start/environment.ts'
import type { LocalRun } from '../start/run-file.ts'

/** The address and namespace of Temporal when nothing else is configured. */
export const defaultTemporal = { address: '127.0.0.1:7233', namespace: 'default' }

/**
 * The Temporal of the start that runs here, else the one that the environment names, else null.
 * Throws ConfigError when the environment contradicts itself.
 */
export function readTemporalSettings(run: LocalRun | null): TemporalSettings | null {
  const given = isTemporalGiven(process.env) ? temporalSettingsIn() : null
  // An embedded server speaks no TLS; the user's own was started with these settings.
  if (run && given?.address !== run.temporalAddress) {
    return { address: run.temporalAddress, namespace: 'default', tls: false }
  }
  return given
}
