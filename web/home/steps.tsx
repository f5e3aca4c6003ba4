import type { Status } from '../../domain/status.ts'
import { CopyCommand } from '../copy.tsx'
import { Inert } from '../inert.tsx'
import { Sign } from '../marks.tsx'
import { Link } from '../router.tsx'

type Step = {
  title: string
  isDone: boolean
  /** The finding, or what to do. */
  says: string
  command?: string
  page?: [href: string, words: string]
}

/** The parts without which no investigation works. */
const runningParts = new Set(['database', 'Temporal', 'worker'])

/** Parts that read a site, besides its sources. */
const eyes = new Set(['platform', 'devices'])

/**
 * Lists the steps of a new site before its first night. A step is done when Nightshift has seen its
 * result.
 */
function listFirstSteps({ parts, sources, model }: FirstSight): Step[] {
  const own = parts.filter(({ name }) => runningParts.has(name))
  const broken = own.filter(({ status }) => status !== 'ok')
  const seen = [...sources, ...parts.filter(({ name }) => eyes.has(name))].filter(({ status }) => status === 'ok')
  const sees = seen.map(({ name }) => name)
  return [
    {
      title: 'Nightshift runs',
      isDone: own.length > 0 && broken.length === 0,
      says:
        broken.length === 0
          ? 'The database, Temporal and the worker answer.'
          : broken.map(({ name, detail }) => `${name}: ${detail}`).join(' '),
      ...(broken.length > 0 && { command: 'nightshift doctor' }),
    },
    {
      title: 'A model answers',
      isDone: model.lastAnswerAt !== null || model.grade?.passport != null,
      says:
        model.grade?.passport != null
          ? `${model.grade.model} was measured: grade ${model.grade.passport.grade}${model.grade.passport.withdrawn ? ', withdrawn since' : ''}.`
          : 'Name the model server and the model in Configuration, then measure the model with sixteen small tasks.',
      command: 'nightshift model check',
      page: ['/config', 'Configuration'],
    },
    {
      title: 'Nightshift sees your site',
      isDone: sees.length > 0,
      says:
        sees.length > 0
          ? `Reads ${sees.slice(0, 4).join(', ')}${sees.length > 4 ? ` and ${sees.length - 4} more` : ''}.`
          : 'Connect metrics, logs or a platform, or put an agent on one host. Nightshift only reads until you allow more.',
      command: 'nightshift mesh enroll web-1 --mode read',
      page: ['/health', 'What Nightshift reads'],
    },
    {
      title: 'An alert arrives',
      isDone: false,
      says: 'Point Alertmanager at /api/v1/ingest/alertmanager. Or post one alert by hand, and see what Nightshift would do with this alert.',
      command: 'nightshift ingest test alert.json --explain',
      page: ['/tokens', 'Create a token for Alertmanager'],
    },
  ]
}

type FirstSight = Pick<Status, 'parts' | 'sources' | 'model'>

/** Shows the page before the first alert. Nothing needs a confirmation. */
export function FirstSteps({ sight }: { sight: FirstSight }) {
  const steps = listFirstSteps(sight)
  const next = steps.findIndex(({ isDone }) => !isDone)
  return (
    <section aria-labelledby="first-steps" className="first-steps">
      <h2 id="first-steps" className="headline">
        No incident yet
      </h2>
      <p className="soft">There are four steps. Nightshift ticks each step once it has seen that the step works.</p>
      <ol>
        {steps.map((step, at) => (
          <li key={step.title} aria-current={at === next ? 'step' : undefined} data-done={step.isDone}>
            <h3>
              <Sign shape={step.isDone ? 'check' : 'ring'} /> {step.title}
              <span className="visually-hidden">{step.isDone ? ', done' : ', not yet'}</span>
            </h3>
            <Inert as="p" text={step.says} />
            {!step.isDone && step.command && <CopyCommand command={step.command} label={step.command} />}
            {!step.isDone && step.page && (
              <p>
                <Link href={step.page[0]}>{step.page[1]}</Link>
              </p>
            )}
          </li>
        ))}
      </ol>
    </section>
  )
}
