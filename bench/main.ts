import { parseArgs } from 'node:util'
import { runEval } from './eval/command.ts'
import { grounding } from './grounding.ts'
import { house } from './house.ts'
import { printChanges } from './house-since.ts'
import { history, queue, turn } from './investigation.ts'
import { judge } from './judge.ts'
import { load } from './load.ts'
import { benchLogTemplates } from './log-templates.ts'
import { mesh } from './mesh.ts'
import { nights } from './nights.ts'
import { page } from './page.ts'
import { placement } from './placement.ts'
import { played } from './played.ts'
import { prompt } from './prompt.ts'
import { benchRegistry } from './registry.ts'
import { benchRetention } from './retention.ts'
import { ruling } from './ruling.ts'
import { benchSources } from './sources.ts'
import { storm } from './storm.ts'
import { stream } from './stream.ts'
import { waitingBench } from './waiting.ts'

const benches: Record<string, () => Promise<void>> = {
  turn,
  ruling,
  queue,
  history,
  prompt,
  judge,
  waiting: waitingBench,
  load,
  page,
  storm,
  nights: async () => nights(Number(values.faults)),
  stream,
  placement,
  mesh,
  house: async () => (values.since ? printChanges(values.since) : house()),
  registry: benchRegistry,
  sources: benchSources,
  retention: benchRetention,
  played: async () => played(values.dir),
  grounding: async () => grounding({ ...values, cases: Number(values.cases), which: values.odd ? 'odd' : 'even' }),
  'log-templates': async () => benchLogTemplates(process.env.LOGHUB_DIR),
}

// The command `eval` parses its own options: `npm run eval -- --help`.
if (process.argv[2] === 'eval') process.exit(await runEval(process.argv.slice(3)))

const { values, positionals: names } = parseArgs({
  allowPositionals: true,
  options: {
    dir: { type: 'string' },
    json: { type: 'boolean', default: false },
    cases: { type: 'string', default: '1000' },
    faults: { type: 'string', default: '12' },
    odd: { type: 'boolean', default: false },
    since: { type: 'string' },
  },
})
const unknown = names.filter((name) => !(name in benches))
if (unknown.length > 0) {
  console.error(`There is no bench ${unknown.join(', ')}. Use: npm run bench -- ${Object.keys(benches).join('|')}`)
  process.exit(2)
}
for (const name of names.length > 0 ? names : Object.keys(benches)) await benches[name]?.()
process.exit(0)
