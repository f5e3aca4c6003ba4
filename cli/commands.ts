import type { CliCommand } from './connection.ts'

/** Adds a command to the program. Its file is loaded when the command is asked for. */
type Load = () => Promise<(root: CliCommand) => void>

/** The first words in the help's order and groups. Each with what fits beside it in 80 columns. */
const commandGroups: Record<string, Record<string, [summary: string, load: Load]>> = {
  'Every day': {
    status: ['what is open, and what waits for a person', async () => (await import('./status.ts')).addStatusCommand],
    home: ['the night at a glance', async () => (await import('./home.ts')).addHomeCommand],
    morning: ['the card of the night', async () => (await import('./shift.ts')).addMorningCommand],
    'hand-over': ['a shift in five lines', async () => (await import('./shift.ts')).addHandOverCommand],
    'follow-ups': ['what is left to do about incidents', async () => (await import('./shift.ts')).addFollowUpsCommand],
    incidents: [
      'list, show, follow, take and close incidents',
      async () => (await import('./incidents/incidents.ts')).addIncidentsCommand,
    ],
    approvals: [
      'approve or deny what the agent asks',
      async () => (await import('./approvals/approvals.ts')).addApprovalsCommand,
    ],
    alerts: ['what the senders of alerts sent', async () => (await import('./alerts.ts')).addAlertsCommand],
    ask: ['ask the agent a question', async () => (await import('./incidents/follow.ts')).addAskCommand],
    act: ['run one action yourself, under the same rules', async () => (await import('./act.ts')).addActCommand],
    undo: ['take one write back, as it left things', async () => (await import('./undo.ts')).addUndoCommand],
    search: [
      'incidents, resources and rows by their words',
      async () => (await import('./search.ts')).addSearchCommand,
    ],
    expectations: [
      'alerts that are expected until a time',
      async () => (await import('./incidents/close.ts')).addExpectationsCommand,
    ],
  },
  'What the agent may do': {
    trust: ['how far each tool goes unasked, by its record', async () => (await import('./trust.ts')).addTrustCommand],
    stop: ['stop a kind of write for the whole site', async () => (await import('./stop.ts')).addStopCommand],
    resume: ['let a kind of write go on', async () => (await import('./stop.ts')).addResumeCommand],
    policy: [
      'the rules of your site, tried before they hold',
      async () => (await import('./policy.ts')).addPolicyCommand,
    ],
    'who-may': ['who may decide about a call', async () => (await import('./who-may.ts')).addWhoMayCommand],
    judge: [
      'what a command would become: run, ask or refuse',
      async () => (await import('./judge.ts')).addJudgeCommand,
    ],
    operators: ['people, and what each may decide', async () => (await import('./operators.ts')).addOperatorsCommand],
    tokens: ['who may ask the API, and for what', async () => (await import('./tokens.ts')).addTokensCommand],
  },
  'What it sees and knows': {
    sources: ['metrics, logs and alerts that it reads', async () => (await import('./sources.ts')).addSourcesCommand],
    ingest: ['alerts and changes that come in', async () => (await import('./ingest.ts')).addIngestCommand],
    inventory: ['import what there is', async () => (await import('./inventory.ts')).addInventoryCommand],
    resources: [
      'what there is, who says so, how it hangs together',
      async () => (await import('./resources.ts')).addResourcesCommand,
    ],
    mesh: ['devices, and the agent on each', async () => (await import('./mesh/mesh.ts')).addMeshCommand],
    jobs: ['declared jobs that bring a resource back', async () => (await import('./jobs.ts')).addJobsCommand],
    knowledge: [
      'runbooks: the shipped ones and yours',
      async () => (await import('./knowledge.ts')).addKnowledgeCommand,
    ],
    changes: ['what was deployed or configured', async () => (await import('./changes.ts')).addChangesCommand],
    model: ['models, and what they can do', async () => (await import('./model/model.ts')).addModelCommand],
    prompt: ['what a model reads of an incident', async () => (await import('./prompt.ts')).addPromptCommand],
  },
  'Look back': {
    reports: [
      'what became of incidents, by week or type',
      async () => (await import('./reports.ts')).addReportsCommand,
    ],
    usage: ['tokens and approvals, and what they cost', async () => (await import('./usage.ts')).addUsageCommand],
    audit: ['who did what', async () => (await import('./audit.ts')).addAuditCommand],
    verify: ['check the log against its hash chains', async () => (await import('./verify.ts')).addVerifyCommand],
    retention: [
      'what is removed for its age, and what is kept',
      async () => (await import('./retention.ts')).addRetentionCommand,
    ],
  },
  'Run it': {
    start: ['start everything here, and show it at work', async () => (await import('./start.ts')).addStartCommand],
    setup: ['set up a site, step by step', async () => (await import('./setup/setup.ts')).addSetupCommand],
    doctor: [
      'check what is reachable, and how to fix the rest',
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
    restore: ['restore a backup, and verify all of it', async () => (await import('./backup.ts')).addRestoreCommand],
    agent: ['be the agent of this host', async () => (await import('./mesh/agent-out.ts')).addAgentOutCommand],
  },
  'Try it': {
    lab: ['real processes to break things in', async () => (await import('./lab/lab.ts')).addLabCommand],
    placement: [
      'where the VMs of a file could go',
      async () => (await import('./placement/placement.ts')).addPlacementCommand,
    ],
  },
  Help: {
    help: ['this help, that of a command, or a topic', async () => (await import('./help.ts')).addHelpCommand],
    completion: [
      'completion for bash, zsh or fish',
      async () => (await import('./completion.ts')).addCompletionCommand,
    ],
    man: ['manual pages, of the same words', async () => (await import('./man.ts')).addManCommand],
  },
}

/** Adds the commands with groups and summaries; those of `loaded` whole, the others by name. */
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
