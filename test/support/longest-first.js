import SequencerModule from '@jest/test-sequencer'

// The package is CommonJS: its default export arrives inside one.
const Sequencer = SequencerModule.default ?? SequencerModule

/** Where tests wait for whole servers to die and come back. */
const longest = ['failure', 'simulation', 'e2e', 'start', 'workflows', 'mesh']

/**
 * In a fresh clone nobody knows yet how long a file takes: those that take minutes begin first, or
 * the run waits for one at its end.
 */
export default class LongestFirst extends Sequencer {
  sort(tests) {
    const rank = ({ path }) => {
      const found = longest.findIndex((folder) => path.includes(`/test/${folder}/`))
      return found === -1 ? longest.length : found
    }
    return [...super.sort(tests)].sort((a, b) => rank(a) - rank(b))
  }
}
