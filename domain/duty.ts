/**
 * Parts of Nightshift that have to work all night. A failed part is shown on Health and in `doctor`
 * with its remedy. If a vital part fails, the heartbeat also stops, and every destination is
 * notified. `docs/how-to/watch-from-outside.md` repeats this table.
 */

type Duty = {
  /** The condition under which the part counts as failed, in words. */
  lostWhen: string
  /** The remedy, if the part itself reports none. */
  remedy: string
  /**
   * True if nobody watches at night without this part; false if investigations continue with
   * limits.
   */
  isVital: boolean
}

export const duties = {
  database: {
    lostWhen:
      'the database does not answer or accept writes, its disk is full, its clock differs, or its connections are used up',
    remedy: 'run "nightshift doctor" on the host of the API, or read its log',
    isVital: true,
  },
  Temporal: {
    lostWhen: 'Temporal cannot be reached, so alerts are accepted and wait',
    remedy: 'start Temporal, or correct TEMPORAL_ADDRESS: "temporal operator cluster health"',
    isVital: true,
  },
  worker: {
    lostWhen: 'no worker runs',
    remedy: 'start a worker: "systemctl start nightshift-worker", "docker compose up -d worker" or "npm start"',
    isVital: true,
  },
  queue: {
    lostWhen:
      "the queue's Schedule is missing, paused, edited or does not run, or no run takes a waiting incident within five minutes",
    remedy: "a worker creates a missing Schedule again within a minute; the worker's log shows what is missing",
    isVital: true,
  },
  platform: {
    lostWhen: 'the platform is configured but does not answer, so nothing can be repaired through it',
    remedy: 'check PLATFORM_URL or PROXMOX_URL and the server behind the address: "nightshift resources list"',
    isVital: true,
  },
  model: {
    lostWhen: 'most model requests of the last hour failed, including the last request, so incidents go to people',
    remedy: '"nightshift model check" tests the model; LLM_SERVERS_FILE can name fallback servers',
    isVital: true,
  },
  'large bodies': {
    lostWhen: 'alerts of a large body wait, and no worker has handled any of them for two minutes',
    remedy: 'start a worker, or read its log',
    isVital: true,
  },
  messages: {
    lostWhen:
      'a message was not delivered to anybody within an hour, or no worker has taken a message for three minutes (a held page: one minute)',
    remedy:
      'send a test: "nightshift config test webhook.critical" or "nightshift destinations test NAME" (to.NAME), or check the channel of the Slack app',
    isVital: true,
  },
  budget: {
    lostWhen: 'the budget is spent, so nothing is investigated',
    remedy: 'raise agent.budget_day or agent.budget_month, or wait for the end of the day or month',
    isVital: true,
  },
  alerts: {
    lostWhen: 'an alert body of a known sender was refused in the last day',
    remedy: 'send the body in another format: docs/reference/ingest.md lists the accepted ones',
    isVital: false,
  },
  retention: {
    lostWhen: 'retention has not finished a run for a day',
    remedy: 'read the log of the API; "nightshift retention preview" shows what waits',
    isVital: false,
  },
  questions: {
    lostWhen:
      'the list of people to ask names somebody who may not decide, or no morning card shows the questions that the wake budget holds back',
    remedy:
      'correct approval.on_call ("nightshift config get approval.on_call"), or the rights of that person ("nightshift operators list")',
    isVital: false,
  },
  restore: {
    lostWhen: 'a backup was restored in the last day',
    remedy: 'follow the steps for people in docs/how-to/backup.md',
    isVital: false,
  },
  trust: {
    lostWhen:
      'tools that an older version ran without approval still run without approval, and nobody has confirmed this',
    remedy:
      '"nightshift trust" lists the record of each tool; "nightshift trust promote TYPE TOOL --to act --reason WHY" confirms a tool',
    isVital: false,
  },
  knowledge: {
    lostWhen: 'a runbook cannot be read',
    remedy: '"nightshift knowledge list" lists each unreadable file with the remedy',
    isVital: false,
  },
  'site policy': {
    lostWhen:
      'the newest policy file is invalid and the last valid file is in force, a file that allows more waits for an admin, or rules need silences that could not be read',
    remedy: '"nightshift policy show" shows the policy in force, the waiting policy and the wrong line',
    isVital: false,
  },
  devices: {
    lostWhen: 'a device does not answer, or does not confine its reads, so each read requires approval',
    remedy:
      '"nightshift mesh devices" lists the devices and the reasons; docs/how-to/troubleshooting.md has the remedies',
    isVital: false,
  },
} satisfies Record<string, Duty>

export type DutyName = keyof typeof duties

/**
 * Finds the entry about a part. Several parts share an entry: `budget of the day` and `budget of
 * the month` have the entry `budget`.
 */
export function dutyOf(part: string): Duty | null {
  const [name = ''] = part.split(' of the ')
  return Object.hasOwn(duties, name) ? duties[name as DutyName] : null
}
