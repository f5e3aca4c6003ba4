import type { CliCommand } from './connection.ts'

/** Adds a command to the program. The file of a command is loaded only if the command is used. */
type Load = () => Promise<(root: CliCommand) => void>

/**
 * The commands in the order and groups of the help, each with a summary that fits in 80 columns.
 */
const commandGroups: Record<string, Record<string, [summary: string, load: Load]>> = {
  'Every day': {
    status: ['open incidents, and what waits for a person', async () => (await import('./status.ts')).addStatusCommand],
    home: ['overview of the night', async () => (await import('./home.ts')).addHomeCommand],
    morning: ['the morning report of the night', async () => (await import('./shift.ts')).addMorningCommand],
    'hand-over': [
      'the hand-over of a shift in five lines',
      async () => (await import('./shift.ts')).addHandOverCommand,
    ],
    'follow-ups': ['tasks that incidents left open', async () => (await import('./shift.ts')).addFollowUpsCommand],
    incidents: [
      'list, show, follow, take and close incidents',
      async () => (await import('./incidents/incidents.ts')).addIncidentsCommand,
    ],
    approvals: [
      'approve or deny what the agent asks',
      async () => (await import('./approvals/approvals.ts')).addApprovalsCommand,
    ],
    alerts: ['alerts as monitoring systems sent them', async () => (await import('./alerts.ts')).addAlertsCommand],
    ask: ['ask the agent a question', async () => (await import('./incidents/follow.ts')).addAskCommand],
    act: ['run one action yourself, under the same rules', async () => (await import('./act.ts')).addActCommand],
    undo: ['undo one write, if nothing has changed since', async () => (await import('./undo.ts')).addUndoCommand],
    search: ['search incidents, resources and the log', async () => (await import('./search.ts')).addSearchCommand],
    expectations: [
      'alerts that are expected until a time',
      async () => (await import('./incidents/close.ts')).addExpectationsCommand,
    ],
  },
  'What the agent may do': {
    trust: ['what each tool may do without approval', async () => (await import('./trust.ts')).addTrustCommand],
    stop: ['stop a kind of write for the whole site', async () => (await import('./stop.ts')).addStopCommand],
    resume: ['allow a stopped kind of write again', async () => (await import('./stop.ts')).addResumeCommand],
    policy: [
      'test the rules of your site, and put them in force',
      async () => (await import('./policy.ts')).addPolicyCommand,
    ],
    'who-may': ['who may decide about a call', async () => (await import('./who-may.ts')).addWhoMayCommand],
    judge: [
      'how a command would be judged: run, ask or refuse',
      async () => (await import('./judge.ts')).addJudgeCommand,
    ],
    operators: ['people, and what each may decide', async () => (await import('./operators.ts')).addOperatorsCommand],
    tokens: ['tokens for the API, and their rights', async () => (await import('./tokens.ts')).addTokensCommand],
  },
  'What Nightshift sees and knows': {
    sources: [
      'metrics, logs and alerts that Nightshift reads',
      async () => (await import('./sources.ts')).addSourcesCommand,
    ],
    ingest: ['alerts and changes that come in', async () => (await import('./ingest.ts')).addIngestCommand],
    inventory: ['import resources and relations', async () => (await import('./inventory.ts')).addInventoryCommand],
    resources: [
      'resources, their sources and their relations',
      async () => (await import('./resources.ts')).addResourcesCommand,
    ],
    mesh: ['devices, and the agent on each', async () => (await import('./mesh/mesh.ts')).addMeshCommand],
    jobs: ['declared jobs that repair a resource', async () => (await import('./jobs.ts')).addJobsCommand],
    knowledge: [
      'runbooks: the shipped ones and yours',
      async () => (await import('./knowledge.ts')).addKnowledgeCommand,
    ],
    changes: ['deployments and configuration changes', async () => (await import('./changes.ts')).addChangesCommand],
    model: ['models, and what they can do', async () => (await import('./model/model.ts')).addModelCommand],
    prompt: ['what a model reads about an incident', async () => (await import('./prompt.ts')).addPromptCommand],
  },
  'Look back': {
    reports: ['how incidents ended, by week or type', async () => (await import('./reports.ts')).addReportsCommand],
    usage: ['tokens and approvals, and what they cost', async () => (await import('./usage.ts')).addUsageCommand],
    audit: ['who did what', async () => (await import('./audit.ts')).addAuditCommand],
    verify: ['check the log against its hash chains', async () => (await import('./verify.ts')).addVerifyCommand],
    retention: [
      'which old data is removed, and which is kept',
      async () => (await import('./retention.ts')).addRetentionCommand,
    ],
  },
  'Run it': {
    start: ['start Nightshift here, with a demonstration', async () => (await import('./start.ts')).addStartCommand],
    setup: ['set up a site, step by step', async () => (await import('./setup/setup.ts')).addSetupCommand],
    doctor: [
      'check which parts work, and how to fix faults',
      async () => (await import('./doctor.ts')).addDoctorCommand,
    ],
    config: [
      'settings that change while Nightshift runs',
      async () => (await import('./config/config.ts')).addConfigCommand,
    ],
    destinations: [
      'where messages go: Slack, PagerDuty, e-mail, webhooks',
      async () => (await import('./destinations.ts')).addDestinationsCommand,
    ],
    login: ['save a token for an API', async () => (await import('./login.ts')).addLoginCommand],
    logout: ['remove the saved token', async () => (await import('./login.ts')).addLogoutCommand],
    migrate: ['bring the database to this release', async () => (await import('./migrate.ts')).addMigrateCommand],
    backup: ['dump the database into a folder', async () => (await import('./backup.ts')).addBackupCommand],
    restore: ['restore a backup, and verify all data', async () => (await import('./backup.ts')).addRestoreCommand],
    agent: ['run the agent of this host', async () => (await import('./mesh/agent-out.ts')).addAgentOutCommand],
  },
  'Try it': {
    lab: ['the lab: real processes to break', async () => (await import('./lab/lab.ts')).addLabCommand],
    placement: [
      'where the VMs that a file lists could run',
      async () => (await import('./placement/placement.ts')).addPlacementCommand,
    ],
  },
  Help: {
    help: ['this help, or help for a command or a topic', async () => (await import('./help.ts')).addHelpCommand],
    completion: [
      'completion for bash, zsh or fish',
      async () => (await import('./completion.ts')).addCompletionCommand,
    ],
    man: ['write manual pages', async () => (await import('./man.ts')).addManCommand],
  },
}

/**
 * Adds all commands with groups and summaries. Loads the command that `loaded` names, or all. The
 * other commands get no arguments and no options.
 */
export async function addCommands(root: CliCommand, loaded: 'all' | string): Promise<void> {
  for (const [group, commands] of Object.entries(commandGroups))
    for (const [name, [summary, load]] of Object.entries(commands)) {
      if (loaded === 'all' || loaded === name) (await load())(root)
      else root.command(name)
      root.commands
        .find((command) => command.name() === name)
        ?.summary(summary)
        .helpGroup(`${group}:`)
    }
}

export const isCommand = (word: string): boolean =>
  Object.values(commandGroups).some((commands) => Object.hasOwn(commands, word))
