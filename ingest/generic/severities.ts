import { severityTable } from '../severity.ts'

/** The words of the tools that people wire up by hand: Zabbix, Proxmox, Icinga, syslog, PagerDuty, Datadog. */
export const severities = severityTable({
  critical: [
    ...['critical', 'crit', 'error', 'err', 'high', 'major', 'page', 'fatal', 'emergency', 'emerg', 'panic', 'alert'],
    ...['disaster', 'severe', 'urgent', 'down', 'p0', 'p1', 'sev0', 'sev1', 's1'],
  ],
  warning: [
    ...['warning', 'warn', 'medium', 'moderate', 'minor', 'average', 'degraded', 'unknown'],
    ...['p2', 'p3', 'sev2', 'sev3', 's2', 's3'],
  ],
  info: [
    ...['info', 'information', 'informational', 'low', 'notice', 'debug', 'none', 'ok', 'up', 'normal', 'trivial'],
    ...['p4', 'p5', 'sev4', 'sev5', 's4'],
  ],
})
