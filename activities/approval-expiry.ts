import type { SettingsReader } from '../db/settings.ts'
import { toolFacts } from '../tools/registry.ts'

/** How long people may take: what the settings say of the tool, else the shorter of the default and the age of its dry run. */
export function expirySecondsOf(settings: SettingsReader, tool: string): number {
  const { value, source } = settings.effective('approval.expiry', tool)
  const agesAfter = toolFacts.get(tool)?.dryRunAgesAfterSeconds
  return source === 'default' && agesAfter !== undefined ? Math.min(value as number, agesAfter) : (value as number)
}
