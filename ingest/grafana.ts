import type { Alert, ParsedAlerts } from '../domain/alert.ts'
import { parseGroup, readAlert } from './alertmanager.ts'
import { isFields, linkOf, maxNameChars, type RawFields } from './fields.ts'

const maxValues = 16

/**
 * Reads Grafana's alerting webhook. The webhook has the shape of Alertmanager's, with the values
 * that made the rule fire and links to the dashboard, panel and silence
 * (https://grafana.com/docs/grafana/latest/alerting/configure-notifications/manage-contact-points/integrations/webhook-notifier/).
 * Never throws.
 */
export function parseGrafana(bytes: Uint8Array, nowIso: string): ParsedAlerts {
  return parseGroup(bytes, (item, group) => {
    const alert = readAlert(item, group, nowIso)
    return {
      ...alert,
      source: 'grafana',
      links: { ...alert.links, ...readLinks(item) },
      values: readValues(item.values),
    }
  })
}

function readLinks(item: RawFields): Pick<Alert['links'], 'dashboard' | 'panel' | 'silence' | 'image'> {
  return {
    dashboard: linkOf(item.dashboardURL),
    panel: linkOf(item.panelURL),
    silence: linkOf(item.silenceURL),
    image: linkOf(item.imageURL),
  }
}

/**
 * Reads the results of the rule's expressions by their letters. Leaves out a result that is not a
 * number.
 */
function readValues(values: unknown): Record<string, number> {
  if (!isFields(values)) return {}
  const numbers = Object.entries(values).filter((pair): pair is [string, number] => typeof pair[1] === 'number')
  return Object.fromEntries(numbers.slice(0, maxValues).map(([name, value]) => [name.slice(0, maxNameChars), value]))
}
