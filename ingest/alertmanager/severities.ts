import { severityTable } from '../severity.ts'

/** Prometheus fixes no words: these are the ones that published rule files use. */
export const severities = severityTable({
  critical: [
    ...['critical', 'crit', 'error', 'err', 'high', 'major', 'page', 'fatal', 'emergency', 'emerg', 'alert'],
    ...['disaster', 'severe', 'urgent', 'blocker', 'p0', 'p1', 'sev0', 'sev1', 's1'],
  ],
  warning: [
    'warning',
    'warn',
    'medium',
    'moderate',
    'minor',
    'average',
    'ticket',
    'p2',
    'p3',
    'sev2',
    'sev3',
    's2',
    's3',
  ],
  info: [
    ...['info', 'information', 'informational', 'low', 'notice', 'debug', 'none', 'ok', 'normal', 'trivial'],
    ...['p4', 'p5', 'sev4', 'sev5', 's4'],
  ],
})
