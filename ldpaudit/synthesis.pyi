from ldpaudit.extras.release.synthesis.factory import GENERATORS as GENERATORS
from ldpaudit.extras.release.synthesis.factory import generator as generator
from ldpaudit.extras.release.synthesis.factory import load_generator as load_generator
from ldpaudit.extras.release.synthesis.factory import save_generator as save_generator
from ldpaudit.extras.release.synthesis.gan import ConditionalGan as ConditionalGan
from ldpaudit.extras.release.synthesis.mixture import ClassMixtures as ClassMixtures
from ldpaudit.generators import Generator as Generator
